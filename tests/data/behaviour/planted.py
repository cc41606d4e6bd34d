"""Benchmark problems in disguise, and near misses, written by hand: stories, paraphrases, translations, other formats.

Every other one is held out: no threshold was chosen on it.
"""

# ruff: noqa: E501
from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from typing import Any

from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.types import TestCase


@dataclass(frozen=True)
class Planted:
    """A problem, and the benchmark problem that it is or is close to, by its title there."""

    of: str
    how: str
    statement: str
    code: str
    inputs: tuple[Any, ...]
    """Argument lists of `solve`, or texts for stdin."""
    is_copy: bool = True
    has_code: bool = True
    """Whether the program comes with the problem, or only its tests."""

    @property
    def titles(self) -> frozenset[str]:
        """Return its titles there: MBPP has some problems twice."""
        return frozenset(self.of.removeprefix("lcb:").split(" or "))

    @property
    def is_held_out(self) -> bool:
        """Every other one."""
        return (DISGUISED if self.is_copy else NEAR_MISSES).index(self) % 2 == 1

    def candidate(self, number: int) -> Candidate:
        """Return the row as it would come from somewhere, with the answers of its own program."""
        is_call = not isinstance(self.inputs[0], str)
        tests = tuple(_test(self.code, given) for given in self.inputs)
        head = self.code.split("\n")[0] if is_call else None
        return Candidate(
            id=f"planted/{number}",
            dataset="planted",
            statement_found=self.statement,
            statement=self.statement,
            fn_name="solve" if is_call else None,
            starter_code=head,
            tests=tests,
            solutions=(Solution(code=self.code),) if self.has_code else (),
        )


def _test(code: str, given: Any) -> TestCase:
    names: dict[str, Any] = {"__name__": "__main__"}
    if isinstance(given, str):
        kept, sys.stdin = sys.stdin, io.StringIO(given)
        try:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
        finally:
            sys.stdin = kept
        return TestCase(input=given, output=printed.getvalue())
    exec(code, names)
    return TestCase(input="\n".join(map(json.dumps, given)), output=json.dumps(names["solve"](*given)))


def _p(of: str, how: str, statement: str, code: str, *inputs: Any, has_code: bool = True) -> Planted:
    return Planted(of, how, statement, code, inputs, has_code=has_code)


def _n(of: str, statement: str, code: str, *inputs: Any) -> Planted:
    return Planted(of, "near miss", statement, code, inputs, is_copy=False)


DISGUISED: tuple[Planted, ...] = (
    _p("HumanEval/0", "story", "A radio station logs the frequencies of pirate senders. Two senders disturb each other "
       "when they are nearer than a tolerance. Line 1: how many senders and the tolerance; line 2: the frequencies. "
       "Print CLASH or CLEAR.",
       "n, t = input().split()\nv = sorted(map(float, input().split()))\n"
       "print('CLASH' if any(b - a < float(t) for a, b in zip(v, v[1:])) else 'CLEAR')",
       "3 0.5\n1.0 2.0 3.5\n", "4 0.75\n4.0 1.5 9.0 2.0\n", "3 2.5\n1.0 9.0 4.0\n", "5 0.25\n1.0 2.0 3.0 4.0 3.9\n",
       "4 1.5\n8.0 6.0 4.0 2.0\n", "4 3.0\n10.0 20.5 30.0 18.0\n", "3 0.1\n1.0 1.05 7.0\n", "3 1.0\n5.0 7.0 9.0\n"),
    _p("HumanEval/3", "story", "Lena's piggy bank starts empty. Every evening she notes what she put in (positive) or "
       "took out (negative). Did the note book ever claim that she took out more than there was? Return whether so.",
       "def solve(notes):\n    s = 0\n    for x in notes:\n        s += x\n        if s < 0:\n            return 'yes'\n"
       "    return 'no'",
       [[5, -3, -1, 4]], [[2, -3, 5]], [[1, 1, -3, 8]], [[10, -10, 1]], [[-1, 2]], [[3, -2, -1, -1]], [[7]], [[4, -5]],
       [[1, -1, 1, -1]], [[6, -2, -5, 9]]),
    _p("HumanEval/5", "paraphrase", "Between each two neighbours of a row of beads a spacer of one fixed colour is put. "
       "Given the colour of the spacer and the row, give the new row.",
       "def solve(colour, row):\n    out = []\n    for x in row:\n        out += [x, colour]\n    return out[:-1]",
       [4, [1, 2, 3]], [8, [5, 6, 3, 2]], [2, [2, 2, 2]], [9, [7, 1]], [0, [31, 15, 12, 40]]),
    _p("HumanEval/9", "story", "A climber reads his altimeter once an hour and wants, for each hour, the greatest "
       "altitude reached so far.\n\nInput: n, then n lines with one altitude each.",
       "n = int(input())\nm = None\nout = []\nfor _ in range(n):\n    x = int(input())\n"
       "    m = x if m is None else max(m, x)\n    out.append(m)\nprint(*out)",
       "4\n3\n1\n5\n2\n", "5\n10\n20\n15\n30\n25\n", "3\n7\n7\n6\n", "6\n1\n2\n2\n9\n4\n11\n", "2\n100\n50\n"),
    _p("HumanEval/11", "translation, German", "Zwei Signale aus Nullen und Einsen werden Stelle für Stelle verglichen: "
       "wo sie gleich sind, steht im Ergebnis 0, sonst 1. Gib das Ergebnis aus.",
       "a = input()\nb = input()\nprint(''.join('01'[x != y] for x, y in zip(a, b)))",
       "1101\n1011\n", "111000\n101010\n", "10\n01\n", "100110\n100110\n", "11111\n10001\n", "1010101\n1101100\n"),
    _p("HumanEval/13", "story", "A tiler has a hall of a by b feet and wants square tiles, as large as can be, none of "
       "them cut. How long is the side of a tile?",
       "a, b = map(int, input().split())\nwhile b:\n    a, b = b, a % b\nprint(a)",
       "12 18\n", "49 14\n", "17 5\n", "144 60\n", "100 75\n", "81 27\n", "1071 462\n"),
    _p("HumanEval/18", "translation, French", "Un guetteur cherche un cri dans le vacarme de la nuit. Combien de fois "
       "l'entend-il, les cris qui se chevauchent étant comptés chacun ? On donne le vacarme puis le cri.",
       "def solve(bruit, cri):\n    return sum(bruit[i:i + len(cri)] == cri for i in range(len(bruit)))",
       ["aaaa", "aa"], ["houhouhou", "hou"], ["abababa", "aba"], ["xyzxyzxy", "zx"], ["moooo", "ooo"], ["kra", "krak"]),
    _p("HumanEval/20", "story", "Of all stars in tonight's list, tell the two whose brightness differs least, the "
       "dimmer first. Input: number of stars; their brightness.",
       "n = int(input())\nv = sorted(map(float, input().split()))\n"
       "d, a, b = min((y - x, x, y) for x, y in zip(v, v[1:]))\nprint(a, b)",
       "5\n1.0 2.0 3.5 4.0 9.0\n", "4\n10.5 3.0 10.0 7.0\n", "3\n5.5 1.0 2.0\n", "6\n1.1 5.0 2.9 8.0 3.1 20.0\n"),
    _p("HumanEval/24", "translation, Chinese", "老师有 n 个学生，要把他们分成人数相同的若干组，并且至少两组。每组最多可以有多少人？",
       "n = int(input())\nd = n - 1\nwhile n % d:\n    d -= 1\nprint(d)",
       "15\n", "7\n", "100\n", "49\n", "24\n", "81\n", "64\n", "35\n", "1001\n"),
    _p("HumanEval/25", "story", "A lock smith makes an alloy number out of primes. Read the number, print the primes "
       "it is made of, smallest first, as often as each is used.",
       "n = int(input())\np = 2\nout = []\nwhile n > 1:\n    while n % p == 0:\n        out.append(p)\n        n //= p\n"
       "    p += 1\nprint(*out)",
       "8\n", "70\n", "57\n", "1155\n", "3249\n", "36\n", "97\n"),
    _p("HumanEval/26", "story", "In the lost-property office every coat number that was handed in more than once is a "
       "fraud; strike all of its entries and read out the rest in order.",
       "def solve(numbers):\n    return [x for x in numbers if numbers.count(x) == 1]",
       [[1, 2, 3, 2, 4]], [[5, 5, 6, 7]], [[9, 8, 7]], [[1, 1, 2, 3, 3, 4, 10]], [[4, 3, 4, 2]]),
    _p("HumanEval/33", "paraphrase", "Only every third runner of the queue (the first, the fourth, ...) may change "
       "places with the other such runners, until their bibs rise from front to back. Give the queue.",
       "def solve(q):\n    q = list(q)\n    q[::3] = sorted(q[::3])\n    return q",
       [[9, 2, 3, 1, 5, 6, 4]], [[5, 6, 3, 4, 8, 9, 2]], [[7, 1, 1, 3, 2, 2]], [[10, 20, 30, 5, 50, 60, 1, 2]]),
    _p("HumanEval/36", "story", "House numbers below n that can be divided by 11 or by 13 get a brass plate. The smith "
       "charges for the digit 7 only. How many 7s does he engrave?",
       "n = int(input())\nprint(sum(str(i).count('7') for i in range(n) if i % 11 == 0 or i % 13 == 0))",
       "50\n", "78\n", "79\n", "100\n", "200\n", "4000\n", "10000\n", "777\n", has_code=False),
    _p("HumanEval/40", "translation, Spanish", "Un contable busca tres asientos distintos del libro que sumados se "
       "anulen. Primero viene el número de asientos, luego los asientos. Escribe SI o NO.",
       "from itertools import combinations\nn = int(input())\nv = list(map(int, input().split()))\n"
       "print('SI' if any(sum(c) == 0 for c in combinations(v, 3)) else 'NO')",
       "4\n1 3 5 0\n", "4\n1 3 -2 1\n", "5\n2 4 -5 3 9\n", "4\n1 2 3 7\n", "3\n-4 1 3\n", "5\n8 -3 -5 2 9\n",
       "3\n5 5 -9\n", "6\n10 -7 1 4 -3 2\n", "4\n6 7 8 9\n", "4\n-1 -1 2 5\n", "4\n-2 7 1 12\n", "3\n0 1 2\n"),
    _p("HumanEval/46", "paraphrase", "In a colony each generation is as large as the four before it together; the first "
       "four have 0, 0, 2 and 0 members. How large is generation n (the first is number 0)?",
       "n = int(input())\nf = [0, 0, 2, 0]\nwhile len(f) <= n:\n    f.append(sum(f[-4:]))\nprint(f[n])",
       "5\n", "8\n", "10\n", "12\n", "3\n", "15\n"),
    _p("HumanEval/49", "story", "A rumour doubles its listeners every hour; the tower clock shows only what is left "
       "when p listeners are taken away as often as possible. What does it show after n hours?",
       "p, n = map(int, input().split())\nprint(pow(2, n, p))",
       "5 3\n", "101 1101\n", "101 0\n", "11 3\n", "5 30\n", "37 25\n", "1000 53\n"),
    _p("HumanEval/57", "story", "A hiker's stops are given by height. Was it only up, or only down (level stretches do "
       "not matter)? Answer 1, else 0.",
       "def solve(h):\n    return 1 if h == sorted(h) or h == sorted(h)[::-1] else 0",
       [[1, 2, 4, 20]], [[1, 20, 4, 10]], [[4, 1, 0, -10]], [[4, 1, 1, 0]], [[1, 2, 3, 2, 5, 60]], [[9, 9, 9]],
       [[5, 3, 4]], [[1, 5, 5, 7]], [[3, 1, 2]], [[8, 6, 6, 2]], [[2, 1, 1, 3]]),
    _p("HumanEval/59", "translation, German", "Ein Schatz ist durch eine Zahl gesichert. Der Schlüssel ist der größte "
       "Primteiler der Zahl. Wie lautet er?",
       "def solve(z):\n    p, g = 2, 1\n    while z > 1:\n        if z % p:\n            p += 1\n        else:\n"
       "            g = p\n            z //= p\n    return g",
       [15], [27], [63], [330], [13195], [2048], [221], has_code=False),
    _p("HumanEval/62", "story", "A train's way is the sum of c0 + c1*t + c2*t^2 + ... Give the numbers that describe "
       "its speed in the same manner. First comes how many numbers there are.",
       "n = int(input())\nc = list(map(int, input().split()))\nprint(*[i * x for i, x in enumerate(c)][1:])",
       "5\n3 1 2 4 5\n", "3\n1 2 3\n", "4\n7 0 0 6\n", "3\n3 2 1\n", "6\n1 1 1 1 1 1\n"),
    _p("HumanEval/65", "paraphrase", "The digits of a safe number stand on a ring which is turned to the right by some "
       "steps; when there are more steps than digits, the number is read from behind instead. Give what is read.",
       "def solve(number, steps):\n    s = str(number)\n    return s[::-1] if steps > len(s) else "
       "s[len(s) - steps:] + s[:len(s) - steps]",
       [100, 2], [12, 2], [97, 8], [12345, 3], [11, 101], [4567, 1], [908, 2]),
    _p("HumanEval/70", "story", "Children line up for a photo: first the smallest of all, then the tallest of those left, "
       "then the smallest again, and so on. Input: number of children, heights.",
       "n = int(input())\nv = sorted(map(int, input().split()))\nout = []\nwhile v:\n"
       "    out.append(v.pop(0 if len(out) % 2 == 0 else -1))\nprint(*out)",
       "4\n1 2 3 4\n", "5\n5 6 7 8 9\n", "5\n1 2 3 4 5\n", "6\n9 1 8 2 7 3\n", "4\n5 5 5 6\n"),
    _p("HumanEval/73", "story", "A banner of coloured flags must read the same from both ends. How many flags have to be "
       "exchanged at least?",
       "def solve(flags):\n    return sum(a != b for a, b in zip(flags, flags[::-1])) // 2",
       [[1, 2, 3, 5, 4, 7, 9, 6]], [[1, 2, 3, 4, 3, 2, 2]], [[1, 4, 2]], [[1, 2, 3, 2, 1]], [[3, 1, 1, 3]], [[7, 8, 9, 1]],
       [[1, 2, 3, 4, 5, 6]], [[2, 9, 9, 3, 2, 2]]),
    _p("HumanEval/84", "paraphrase", "Add up the digits of an account number and write the sum with ones and zeros.",
       "n = input().strip()\nprint(bin(sum(map(int, n)))[2:])",
       "1000\n", "150\n", "147\n", "333\n", "963\n", "9999\n", "27\n", "58\n"),
    _p("HumanEval/97", "story", "Two wheels stop at two numbers; the prize is the product of what their last drums show.",
       "a, b = map(int, input().split())\nprint(abs(a) % 10 * (abs(b) % 10))",
       "148 412\n", "19 28\n", "2020 1851\n", "17 27\n", "76 67\n", "35 99\n", "18 14\n"),
    _p("HumanEval/100", "translation, Chinese", "用石头堆一座有 n 层的塔。最下面一层有 n 块石头。如果 n 是奇数，上面每一层的石头数是"
       "下一个奇数；如果是偶数，就是下一个偶数。依次写出每层的石头数。",
       "def solve(n):\n    return [n + 2 * i for i in range(n)]", [3], [4], [5], [6], [8], has_code=False),
    _p("HumanEval/109", "story", "Cups with different numbers stand on a round belt. The belt may only be moved on by "
       "whole cups. Can the cups come to stand in rising order from the mark? Print possible or impossible.",
       "n = int(input())\nv = list(map(int, input().split()))\n"
       "print('possible' if any(v[i:] + v[:i] == sorted(v) for i in range(n)) else 'impossible')",
       "5\n3 4 5 1 2\n", "5\n3 5 10 1 2\n", "4\n4 3 1 2\n", "5\n3 5 4 1 2\n", "3\n1 2 3\n", "3\n3 2 1\n", "4\n2 3 4 1\n",
       "4\n2 1 3 4\n", "5\n7 9 1 3 5\n", "5\n9 7 1 3 5\n", "4\n8 2 4 6\n", "4\n8 2 6 4\n"),
    _p("HumanEval/114", "story", "A shop's daily results stand in a row. What is the worst total of any run of days?",
       "n = int(input())\nv = list(map(int, input().split()))\n"
       "print(min(sum(v[i:j]) for i in range(n) for j in range(i + 1, n + 1)))",
       "6\n2 3 4 1 2 4\n", "3\n-1 -2 -3\n", "5\n-1 -2 -3 2 -10\n", "4\n100 -33 32 -1\n", "4\n7 -9 3 -4\n", "2\n10 11\n"),
    _p("HumanEval/123", "paraphrase", "A stone jumps: from an even square to the half of it, from an odd one to three "
       "times it and one more, until it lies on 1. List the odd squares that it lay on, in rising order.",
       "def solve(n):\n    odd = []\n    while n != 1:\n        if n % 2:\n            odd.append(n)\n"
       "        n = 3 * n + 1 if n % 2 else n // 2\n    return sorted(odd + [1])",
       [14], [5], [12], [7], [9], [20]),
    _p("HumanEval/130", "translation, French", "On définit une suite : u(1) = 3 ; si n est pair, u(n) = 1 + n / 2 ; si n "
       "est impair, u(n) = u(n-1) + u(n-2) + u(n+1). Donner les n + 1 premiers termes.",
       "def solve(n):\n    u = [1, 3]\n    for i in range(2, n + 1):\n        u.append(1 + i // 2 if i % 2 == 0 else "
       "u[i - 1] + u[i - 2] + 1 + (i + 1) // 2)\n    return u[:n + 1]", [3], [4], [5], [6], [9], [11]),
    _p("HumanEval/139", "story", "A magician stacks boxes: the n-th show uses the product of all the boxes of the shows "
       "before, where show k alone needs k! boxes. How many for show n?",
       "n = int(input())\nf = r = 1\nfor i in range(1, n + 1):\n    f *= i\n    r *= f\nprint(r)",
       "4\n", "5\n", "7\n", "1\n", "6\n", "3\n"),
    _p("HumanEval/142", "paraphrase", "In a row of amounts, those at places that 3 divides (from 0) are squared, others at "
       "places that 4 divides are cubed, the rest stays. What is the total?",
       "def solve(v):\n    return sum(x * x if i % 3 == 0 else x ** 3 if i % 4 == 0 else x for i, x in enumerate(v))",
       [[1, 2, 3]], [[1, 4, 9]], [[-1, -5, 2, -1, -5]], [[3, 1, 4, 1, 5, 9, 2, 6, 5]], [[2, 2, 2, 2, 2]]),
    _p("HumanEval/147", "story", "Cards 1 to n show the numbers i*i - i + 1. In how many ways can three cards be drawn "
       "whose numbers add up to a multiple of three?",
       "n = int(input())\na = [i * i - i + 1 for i in range(1, n + 1)]\n"
       "print(sum((a[i] + a[j] + a[k]) % 3 == 0 for i in range(n) for j in range(i) for k in range(j)))",
       "5\n", "6\n", "10\n", "12\n", "20\n", "3\n"),
    _p("HumanEval/152", "translation, German", "Beim Tippspiel werden Tipps mit den Ergebnissen verglichen. Für jedes "
       "Spiel ist gesucht, um wie viel der Tipp daneben lag. Erst n, dann die Ergebnisse, dann die Tipps.",
       "n = int(input())\na = list(map(int, input().split()))\nb = list(map(int, input().split()))\n"
       "print(*[abs(x - y) for x, y in zip(a, b)])",
       "6\n1 2 3 4 5 1\n1 2 3 4 2 -2\n", "4\n0 0 0 8\n1 5 -4 3\n", "3\n1 2 3\n-1 -2 -3\n", "4\n1 2 3 5\n-1 2 3 4\n"),
    _p("HumanEval/159", "story", "A rabbit has had some carrots, still wants some, and the box holds some more. Tell how "
       "many it has had at the end of the meal, and how many lie in the box.",
       "a, b, c = map(int, input().split())\nprint(a + min(b, c), max(c - b, 0))",
       "5 6 10\n", "4 8 9\n", "1 10 10\n", "2 11 5\n", "4 5 7\n", "40 3 25\n"),
    _p("Mbpp/95", "paraphrase", "Of several bags, tell how many things the emptiest holds.",
       "def solve(bags):\n    return min(map(len, bags))",
       [[[1, 2, 3], [4, 5]]], [[[1], [2, 3], [4, 5, 6]]], [[[3, 3, 3, 1], [4, 4, 4, 9, 9]]], [[[1, 2, 3, 5, 6, 7]]],
       [[[7, 1, 1, 8, 4, 4, 4], [1, 2, 8, 8, 1, 4, 5, 6]]], [[[2, 2, 2], [3, 1, 4, 1], [5, 9, 2]]]),
    _p("Mbpp/207", "story", "A sequence of notes holds an echo when the same tune can be picked out of it twice, never "
       "using one note at the same place of both tunes. How long is the longest echo?",
       "s = input().strip()\nn = len(s)\nd = [[0] * (n + 1) for _ in range(n + 1)]\nfor i in range(n):\n"
       "    for j in range(n):\n        d[i + 1][j + 1] = d[i][j] + 1 if s[i] == s[j] and i != j else "
       "max(d[i][j + 1], d[i + 1][j])\nprint(d[n][n])",
       "AABEBCDD\n", "aabb\n", "abcabcab\n", "xyzzyxzz\n", "banana\n", "abcdefg\n", "mississippi\n"),
    _p("Mbpp/291", "story", "n posts are painted with k colours so that no three neighbours look alike. How many ways?",
       "n, k = map(int, input().split())\nMOD = 10**9 + 7\nsame, diff = 0, k\nfor i in range(2, n + 1):\n"
       "    same, diff = diff, (same + diff) * (k - 1) % MOD\nprint((same + diff) % MOD)",
       "2 4\n", "3 2\n", "4 4\n", "5 3\n", "6 2\n", "7 5\n"),
    _p("Mbpp/347 or Mbpp/76", "translation, Spanish", "Un mosaico tiene m por n baldosas cuadradas. ¿Cuántos cuadrados, de cualquier "
       "tamaño, se pueden ver en él?",
       "m, n = map(int, input().split())\nprint(sum((m - i) * (n - i) for i in range(min(m, n))))",
       "4 3\n", "2 2\n", "1 1\n", "5 4\n", "7 3\n", "6 6\n"),
    _p("Mbpp/389", "story", "Bees on a strange comb number 2 in year 0 and 1 in year 1; later each year has as many as "
       "the two years before together. How many are there in year n?",
       "n = int(input())\na, b = 2, 1\nfor _ in range(n):\n    a, b = b, a + b\nprint(a)",
       "9\n", "4\n", "3\n", "12\n", "15\n", "7\n"),
    _p("Mbpp/515", "story", "Can some of the weights be chosen so that they weigh together a multiple of m? First m, then "
       "the weights.",
       "def solve(m, w):\n    seen = set()\n    for x in w:\n        seen |= {(s + x) % m for s in seen} | {x % m}\n"
       "    return 0 in seen",
       [6, [3, 1, 7, 5]], [5, [1, 7]], [5, [1, 6]], [7, [2, 3, 8]], [9, [4, 2, 1]], [4, [1, 1, 5]], [10, [3, 3, 3]],
       [8, [5, 6, 7, 1]], [11, [1, 2, 3]], [6, [4, 4]], [6, [4, 4, 4]], [12, [5, 5, 1]]),
    _p("Mbpp/683", "paraphrase", "Is a given whole number the area of two square gardens together, either of which may be "
       "missing? Answer Ja or Nein.",
       "n = int(input())\nprint('Ja' if any(int((n - i * i) ** .5) ** 2 == n - i * i for i in range(int(n ** .5) + 1)) "
       "else 'Nein')",
       "25\n", "24\n", "17\n", "50\n", "21\n", "3\n", "98\n", "99\n", "45\n", "46\n", "65\n", "63\n", "74\n", "75\n"),
    _p("Mbpp/935", "translation, Chinese", "用正方形地砖铺金字塔：第 i 层是边长为 i 的正方形。n 层一共需要多少块地砖？",
       "n = int(input())\nprint(sum(i * i for i in range(1, n + 1)))", "6\n", "7\n", "12\n", "20\n", "33\n"),
    _p("lcb:number-of-beautiful-pairs", "story", "Train tickets carry numbers. A ticket and a later one make friends if "
       "the front digit of the earlier and the back digit of the later share no divisor but one. How many friendships? "
       "Input: n and the numbers.",
       "from math import gcd\nn = int(input())\nv = input().split()\n"
       "print(sum(gcd(int(v[i][0]), int(v[j][-1])) == 1 for i in range(n) for j in range(i + 1, n)))",
       "4\n2 5 1 4\n", "3\n11 21 12\n", "5\n31 25 72 79 74\n", "4\n66 24 48 82\n", "6\n13 57 91 22 84 35\n"),
    _p("lcb:maximum-prime-difference", "paraphrase", "On a shelf with numbered books, how far apart are the first and the "
       "last book whose number is prime?",
       "def solve(v):\n    p = [i for i, x in enumerate(v) if x > 1 and all(x % d for d in range(2, x))]\n"
       "    return p[-1] - p[0]",
       [[4, 2, 9, 5, 3]], [[4, 8, 2, 8]], [[7, 1, 1, 11, 6]], [[2, 3, 5, 7, 9, 13, 1]], [[10, 17, 12, 15, 19, 4, 4]]),
    _p("lcb:continuous-subarrays", "story", "Thermometer readings stand in a row. How many stretches of one reading or "
       "more never differ by more than two degrees within?",
       "n = int(input())\nv = list(map(int, input().split()))\n"
       "print(sum(max(v[i:j]) - min(v[i:j]) <= 2 for i in range(n) for j in range(i + 1, n + 1)))",
       "4\n5 4 2 4\n", "3\n1 2 3\n", "6\n9 7 8 3 4 4\n", "5\n10 20 11 12 13\n", "7\n1 1 1 5 6 7 8\n"),
    _p("lcb:minimum-operations-to-collect-elements", "translation, French", "On dépile des assiettes numérotées par la "
       "fin de la liste jusqu'à posséder toutes celles de 1 à k. Combien d'assiettes faut-il retirer ?",
       "def solve(piles, k):\n    need = set(range(1, k + 1))\n    n = 0\n    while need:\n        n += 1\n"
       "        need.discard(piles[-n])\n    return n",
       [[3, 1, 5, 4, 2], 2], [[3, 1, 5, 4, 2], 5], [[3, 2, 5, 3, 1], 3], [[1, 9, 2, 7, 3, 8], 3], [[2, 1, 4, 6, 5], 1]),
    _p("lcb:count-tested-devices-after-test-operations", "story", "A guard checks lamps one by one. A lamp that still has "
       "oil is counted, and the draught then costs every later lamp one unit of oil (none has less than nothing). "
       "How many are counted?",
       "def solve(oil):\n    n = 0\n    for x in oil:\n        n += x > n\n    return n",
       [[1, 1, 2, 1, 3]], [[0, 1, 2]], [[4, 4, 4, 4]], [[0, 0, 3, 1, 2, 5]], [[1, 2, 3, 4, 5, 6]], [[7, 0, 1, 1, 9, 2, 3]]),
    _p("lcb:determine-the-minimum-sum-of-a-k-avoiding-array", "story", "A guest list has n different positive numbers, "
       "and no two of them may add up to the unlucky k. What is the least total?",
       "n, k = map(int, input().split())\ns = set()\nx = 1\nwhile len(s) < n:\n    if k - x not in s:\n"
       "        s.add(x)\n    x += 1\nprint(sum(s))", "5 4\n", "2 6\n", "7 10\n", "3 3\n", "10 8\n", "6 25\n"),
    _p("lcb:find-the-n-th-value-after-k-seconds", "story", "n bakers stand in a row with one roll each. Every minute each "
       "one then holds as many as all up to and including him held before. How many has the last after k minutes, "
       "modulo 1000000007?",
       "n, k = map(int, input().split())\na = [1] * n\nfor _ in range(k):\n    for i in range(1, n):\n"
       "        a[i] = (a[i] + a[i - 1]) % (10**9 + 7)\nprint(a[-1])", "4 5\n", "5 3\n", "7 7\n", "3 12\n", "9 2\n"),
    _p("lcb:minimum-number-of-operations-to-make-array-empty", "paraphrase", "Cards of the same value may be thrown away "
       "in pairs or in threes. In how few throws is the hand empty? -1 where it cannot be.",
       "def solve(hand):\n    t = 0\n    for x in set(hand):\n        c = hand.count(x)\n        if c == 1:\n"
       "            return -1\n        t += -(-c // 3)\n    return t",
       [[2, 3, 3, 2, 2, 4, 2, 3, 4]], [[2, 1, 2, 2, 3, 3]], [[5, 5, 5, 5, 5]], [[1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3]],
       [[9, 9]], [[6, 6, 6, 7, 7, 7, 8, 8, 8, 8]]),
    _p("lcb:number-of-bit-changes-to-make-two-integers-equal", "story", "A row of lamps shows a number with ones and zeros; "
       "lamps can only be switched off. How many must be, to show the second number? -1 if that is impossible.",
       "a, b = map(int, input().split())\nprint(bin(a ^ b).count('1') if a | b == a else -1)",
       "13 4\n", "21 21\n", "14 13\n", "255 16\n", "96 32\n", "77 1\n", "10 5\n"),
    _p("lcb:remove-adjacent-almost-equal-characters", "translation, German", "Auf einer Kette stehen Buchstaben. Zwei "
       "Nachbarn stören, wenn sie gleich sind oder im Alphabet nebeneinander stehen. Wie viele Perlen muss man mindestens "
       "austauschen, damit nichts mehr stört?",
       "def solve(k):\n    n, i = 0, 1\n    while i < len(k):\n        if abs(ord(k[i]) - ord(k[i - 1])) < 2:\n"
       "            n += 1\n            i += 1\n        i += 1\n    return n",
       ["aaaaa"], ["abddez"], ["zyxyxyz"], ["hellothere"], ["acegikm"], ["abcdefghij"], ["mnopzzzzab"]),
    _p("lcb:Attack", "story", "A wall of height A is worn down by B every storm. After how many storms is it gone?",
       "def solve(height, wear):\n    return -(-height // wear)",
       [7, 3], [123456789012345678, 987654321], [999999999999999998, 2], [10, 10], [55, 6], [1000, 7]),
    _p("lcb:321", "story", "Numbers whose digits only fall from left to right are called stairs. Which is the "
       "k-th smallest of them?",
       "def solve(k):\n    from itertools import combinations\n"
       "    v = sorted(int(''.join(c)) for n in range(1, 11) for c in combinations('9876543210', n))\n"
       "    return v[k]", [15], [321], [777], [40], [100], [1000]),
    _p("lcb:Divisible", "paraphrase", "From a list of bills keep those that k friends can share without a rest, and give "
       "each one's part.",
       "def solve(k, bills):\n    return [b // k for b in bills if b % k == 0]",
       [2, [2, 5, 6, 7, 10]], [1, [3, 4, 7]], [10, [50, 51, 54, 60, 65]], [3, [9, 12, 14, 33]], [7, [7, 15, 21, 70]]),
    _p("lcb:Subsegment Reverse", "translation, Spanish", "Los vagones de un tren van numerados de 1 a n. Se da la vuelta al "
       "tramo del vagón l al r. ¿En qué orden quedan?",
       "def solve(n, l, r):\n    v = list(range(1, n + 1))\n    v[l - 1:r] = v[l - 1:r][::-1]\n    return v",
       [5, 2, 3], [7, 1, 1], [10, 1, 10], [6, 3, 6], [8, 2, 7]),
    _p("lcb:Make Them Narrow", "story", "k of the n pupils may stay at home on photo day. How small can the difference "
       "between the tallest and the smallest on the photo become?",
       "def solve(k, heights):\n    h = sorted(heights)\n    m = len(h) - k\n"
       "    return min(h[i + m - 1] - h[i] for i in range(k + 1))",
       [2, [3, 1, 5, 4, 9]], [5, [1, 1, 1, 1, 1, 1]], [1, [31, 41, 59, 26, 53]], [3, [10, 20, 40, 80, 81, 99]],
       [2, [7, 70, 72, 5, 6, 8]]),
    _p("lcb:Separated Lunch", "story", "Crates of given weights are loaded on two ships. The heavier ship should be as light "
       "as it can be. What does it carry?",
       "def solve(w):\n    t = sum(w)\n    s = {0}\n    for x in w:\n        s |= {a + x for a in s}\n"
       "    return min(max(a, t - a) for a in s)",
       [[2, 3, 5, 10, 12]], [[1, 1]], [[22, 25, 26, 45, 22, 31]], [[8, 1, 1, 1]], [[9, 14, 3, 7, 7, 30]]),
    _p("lcb:aaaadaa", "translation, Chinese", "给出一个单词和两个字母 x、y。单词里除了 x 以外的字母全部换成 y，输出换好的单词。第一行是单词，"
       "第二行是两个字母。",
       "s = input().strip()\nx, y = input().split()\nprint(''.join(c if c == x else y for c in s))",
       "abcabc\na z\n", "bookkeeper\nk o\n", "zzz\nz q\n", "mississippi\ns i\n", "level\ne l\n"),
)  # fmt: skip

NEAR_MISSES: tuple[Planted, ...] = (
    _n("HumanEval/0", "Radio senders disturb each other when they are nearer than a tolerance. How many pairs of "
       "neighbours, by frequency, disturb each other?",
       "def solve(v, t):\n    v = sorted(v)\n    return sum(b - a < t for a, b in zip(v, v[1:]))",
       [[1.0, 2.0, 3.5], 0.5], [[4.0, 1.5, 9.0, 2.0], 0.75], [[1.0, 2.0, 3.0, 3.9, 4.0], 1.5], [[8.0, 6.0, 4.0], 2.5]),
    _n("HumanEval/3", "A piggy bank starts with 10 coins. Was it ever empty or below?",
       "def solve(v):\n    s = 10\n    for x in v:\n        s += x\n        if s <= 0:\n            return True\n"
       "    return False",
       [[5, -3, -1, 4]], [[2, -13, 5]], [[1, 1, -3, 8]], [[10, -20, 1]], [[-10, 2]], [[3, -2, -1, -1]], [[7]], [[-4, -5]],
       [[-9, -1, 1]], [[6, -2, -5, 9]]),
    _n("HumanEval/9", "For each hour give the lowest altitude so far.",
       "def solve(v):\n    return [min(v[:i + 1]) for i in range(len(v))]",
       [[3, 1, 5, 2]], [[10, 20, 15, 30]], [[7, 7, 6]], [[9, 4, 11, 1]], [[100, 50]]),
    _n("HumanEval/13", "Square tiles, as large as can be, cover a hall of a by b feet. How many does one more hall of a by "
       "a feet need than this one?",
       "from math import gcd\na, b = map(int, input().split())\ng = gcd(a, b)\nprint(a // g * (a // g) - a // g * (b // g))",
       "12 18\n", "49 14\n", "17 5\n", "144 60\n", "100 75\n", "81 27\n"),
    _n("HumanEval/18", "How often can a cry be cut out of the noise, no letter used twice?",
       "def solve(noise, cry):\n    return noise.count(cry)",
       ["aaaa", "aa"], ["houhouhou", "hou"], ["abababa", "aba"], ["xyzxyzxy", "zx"], ["mooooo", "ooo"], ["aaaaa", "aaa"]),
    _n("HumanEval/24", "What is the second smallest divisor above 1 of n (n itself where there is none)?",
       "n = int(input())\nprint(([d for d in range(2, n + 1) if n % d == 0] + [n])[1])",
       "15\n", "7\n", "100\n", "49\n", "24\n", "81\n", "64\n", "35\n", "1001\n"),
    _n("HumanEval/25", "Print the different primes that divide a number.",
       "n = int(input())\nprint(*[p for p in range(2, n + 1) if n % p == 0 and all(p % d for d in range(2, p))])",
       "8\n", "70\n", "57\n", "1155\n", "3249\n", "36\n", "97\n"),
    _n("HumanEval/26", "Of every coat number keep only the first entry, and then those below 100, doubled.",
       "def solve(v):\n    return [2 * x for x in dict.fromkeys(v) if x < 100]",
       [[1, 2, 3, 2, 4]], [[5, 5, 6, 107]], [[9, 8, 7]], [[1, 1, 2, 3, 3, 400]], [[4, 3, 4, 2]]),
    _n("HumanEval/40", "Are there three different entries that add up to 10?",
       "from itertools import combinations\ndef solve(v):\n    return any(sum(c) == 10 for c in combinations(v, 3))",
       [[1, 3, 5, 0]], [[1, 3, 6, 1]], [[2, 4, 4, 3, 9]], [[1, 2, 3, 7]], [[-4, 1, 13]], [[8, -3, 5, 2, 9]], [[5, 5, 0]],
       [[10, -7, 1, 4, -3, 2]], [[6, 7, 8, 9]], [[-1, -1, 2, 5]]),
    _n("HumanEval/46", "Each generation is as large as the three before it together; the first are 0, 1 and 2. How large is "
       "generation n?",
       "n = int(input())\nf = [0, 1, 2]\nwhile len(f) <= n:\n    f.append(sum(f[-3:]))\nprint(f[n])",
       "5\n", "8\n", "10\n", "12\n", "3\n", "15\n"),
    _n("HumanEval/62", "A train's speed is c0 + c1*t + ...; give the numbers of its way, the constant 0 left out, each "
       "multiplied by 60.",
       "def solve(c):\n    return [60 * x / (i + 1) for i, x in enumerate(c)]",
       [[3, 1, 2, 4, 5]], [[1, 2, 3]], [[7, 0, 0, 6]], [[3, 2, 1]]),
    _n("HumanEval/70", "First the tallest, then the smallest, then the tallest of those left, and so on.",
       "def solve(v):\n    v = sorted(v)\n    out = []\n    while v:\n        out.append(v.pop(-1 if len(out) % 2 == 0 "
       "else 0))\n    return out",
       [[1, 2, 3, 4]], [[5, 6, 7, 8, 9]], [[9, 1, 8, 2, 7, 3]], [[5, 5, 5, 6]]),
    _n("HumanEval/73", "How many flags must be taken away from the ends so that the banner reads the same from both ends?",
       "def solve(v):\n    n = len(v)\n    return n - max(j - i for i in range(n) for j in range(i + 1, n + 1) "
       "if v[i:j] == v[i:j][::-1])",
       [[1, 2, 3, 5, 4, 7, 9, 6]], [[1, 2, 3, 4, 3, 2, 2]], [[1, 4, 2]], [[1, 2, 3, 2, 1]], [[3, 1, 1, 3, 7]], [[7, 8, 9, 1]]),
    _n("HumanEval/84", "Write the product of the digits of a number with ones and zeros.",
       "n = input().strip()\np = 1\nfor c in n:\n    p *= int(c)\nprint(bin(p)[2:])",
       "1000\n", "151\n", "147\n", "333\n", "963\n", "9999\n", "27\n", "58\n"),
    _n("HumanEval/97", "The prize is the sum of the last digits of two numbers.",
       "a, b = map(int, input().split())\nprint(a % 10 + b % 10)",
       "148 412\n", "19 28\n", "2020 1851\n", "17 27\n", "76 67\n", "35 99\n"),
    _n("HumanEval/114", "A shop's daily results stand in a row. What is the best total of any run of days?",
       "n = int(input())\nv = list(map(int, input().split()))\n"
       "print(max(sum(v[i:j]) for i in range(n) for j in range(i + 1, n + 1)) * 2)",
       "6\n2 3 4 1 2 4\n", "3\n-1 -2 -3\n", "5\n-1 -2 -3 2 -10\n", "4\n100 -33 32 -1\n", "4\n7 -9 3 -4\n"),
    _n("Mbpp/291", "n posts are painted with k colours so that no two neighbours look alike and the ends differ too.",
       "n, k = map(int, input().split())\nprint((k - 1) ** n + (-1) ** n * (k - 1))",
       "3 4\n", "4 2\n", "4 4\n", "5 3\n", "6 2\n", "7 5\n"),
    _n("Mbpp/347", "How many rectangles, squares included, can be seen in m by n tiles?",
       "m, n = map(int, input().split())\nprint(m * (m + 1) * n * (n + 1) // 4)",
       "4 3\n", "2 2\n", "5 4\n", "7 3\n", "6 6\n"),
    _n("Mbpp/389", "Bees number 3 in year 0 and 1 in year 1; each later year has as many as the two before together. How "
       "many are there in year n?",
       "n = int(input())\na, b = 3, 1\nfor _ in range(n):\n    a, b = b, a + b\nprint(a)",
       "9\n", "4\n", "3\n", "12\n", "15\n", "7\n"),
    _n("lcb:number-of-beautiful-pairs", "A ticket and a later one make friends if the back digit of the earlier and the "
       "front digit of the later share no divisor but one. How many friendships?",
       "from math import gcd\ndef solve(v):\n    n = len(v)\n    return sum(gcd(v[i] % 10, int(str(v[j])[0])) == 1 "
       "for i in range(n) for j in range(i + 1, n))",
       [[2, 5, 1, 4]], [[11, 21, 12]], [[31, 25, 72, 79, 74]], [[66, 24, 48, 82]], [[13, 57, 91, 22, 84, 35]]),
    _n("lcb:maximum-prime-difference", "How far apart are the first and the last book with an even number?",
       "def solve(v):\n    p = [i for i, x in enumerate(v) if x % 2 == 0]\n    return p[-1] - p[0]",
       [[4, 2, 9, 5, 3]], [[4, 8, 2, 8]], [[8, 1, 1, 10, 6]], [[2, 3, 5, 7, 9, 14, 1]], [[10, 17, 12, 15, 19, 4, 4]]),
    _n("lcb:continuous-subarrays", "How many stretches never differ by more than three degrees within?",
       "def solve(v):\n    n = len(v)\n    return sum(max(v[i:j]) - min(v[i:j]) <= 3 for i in range(n) "
       "for j in range(i + 1, n + 1))",
       [[5, 4, 1, 4]], [[1, 2, 4]], [[9, 6, 8, 3, 4, 4]], [[10, 20, 11, 12, 14]], [[1, 1, 1, 5, 6, 7, 8]]),
    _n("lcb:Make Them Narrow", "k of the pupils stay at home. How large can the difference between the tallest and the "
       "smallest become at least, if those who stay at home are the k smallest?",
       "def solve(k, heights):\n    h = sorted(heights)[k:]\n    return h[-1] - h[0]",
       [2, [3, 1, 5, 4, 9]], [1, [31, 41, 59, 26, 53]], [3, [10, 20, 40, 80, 81, 99]], [2, [7, 70, 72, 5, 6, 8]]),
    _n("lcb:Separated Lunch", "Crates are loaded on two ships. What is the least difference of the two loads?",
       "def solve(w):\n    t = sum(w)\n    s = {0}\n    for x in w:\n        s |= {a + x for a in s}\n"
       "    return min(abs(t - 2 * a) for a in s)",
       [[2, 3, 5, 10, 12]], [[1, 1]], [[22, 25, 26, 45, 22, 31]], [[8, 1, 1, 1]], [[9, 14, 3, 7, 7, 30]]),
    _n("lcb:Divisible", "From a list of bills keep those that k friends cannot share without a rest.",
       "def solve(k, bills):\n    return [b for b in bills if b % k]",
       [2, [2, 5, 6, 7, 10]], [4, [3, 4, 7]], [10, [50, 51, 54, 60, 65]], [3, [9, 12, 14, 34]], [7, [8, 70, 15, 21]]),
    _n("lcb:aaaadaa", "In a word, write the letter y before every letter x.",
       "s = input().strip()\nx, y = input().split()\nprint(s.replace(x, y + x))",
       "abcabc\na z\n", "bookkeeper\nk o\n", "zzz\nz q\n", "mississippi\ns i\n", "level\ne l\n"),
    _n("HumanEval/13", "A straight line is drawn from one corner of a sheet of squares to the other. How many corners of "
       "squares does it meet?",
       "from math import gcd\na, b = map(int, input().split())\nprint(gcd(a, b) + 1)",
       "12 18\n", "49 14\n", "17 5\n", "144 60\n", "100 75\n", "81 27\n", "1071 462\n"),
    _n("HumanEval/53", "Two boards are joined by a piece of two feet. How long is the whole?",
       "a, b = map(int, input().split())\nprint(a + b + 2)",
       "3 4\n", "50 7\n", "11 90\n", "23 24\n", "8 61\n", "105 20\n"),
    _n("HumanEval/60", "Into how many pieces at most do n straight cuts part a pancake?",
       "n = int(input())\nprint(n * (n + 1) // 2 + 1)",
       "6\n", "11\n", "30\n", "100\n", "5\n", "10\n", "1\n"),
    _n("HumanEval/97", "The product of what the last drums of two wheels show, and one coin more.",
       "a, b = map(int, input().split())\nprint(abs(a) % 10 * (abs(b) % 10) + 1)",
       "148 412\n", "19 28\n", "2020 1851\n", "17 27\n", "76 67\n", "35 99\n", "18 14\n"),
    _n("HumanEval/23", "How many bytes does a word take with the zero at its end?",
       "print(len(input()) + 1)",
       "abc\n", "kettle\n", "asdnakj\n", "x\n", "bookkeeper\n", "it\n"),
    _n("HumanEval/35", "Boxes are numbered from 0; these are in use. What is the least number above all of them?",
       "def solve(v):\n    return max(v) + 1",
       [[1, 2, 3]], [[5, 3, 15, 2, 12, 3, 9, 123, 1, 10]], [[40, 4]], [[17, 17, 8]], [[0, 99]]),
    _n("HumanEval/42", "Every pay rises by two.",
       "def solve(v):\n    return [x + 2 for x in v]",
       [[1, 2, 3]], [[5, 3, 5, 2, 3, 3, 9, 0, 123]], [[40, 4]], [[17, 17, 8]], [[99]]),
    _n("HumanEval/45", "A sail has three corners; what do a base and a height cost at half a coin a square foot, and one "
       "coin for the hem?",
       "a, h = map(int, input().split())\nprint(a * h / 2 + 1)",
       "5 3\n", "2 2\n", "10 8\n", "7 9\n", "30 11\n", "6 25\n"),
)  # fmt: skip
