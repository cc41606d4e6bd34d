"""Interactive problems, and programs that answer them well, badly and not at all."""

from microcoder.judge.core.types import Checker, Interactor, Problem

GUESS = """
import sys

secret = int(open(sys.argv[1]).read())
for turn in range(10):
    line = sys.stdin.readline()
    if not line:
        print("unexpected end", file=sys.stderr)
        sys.exit(1)
    guess = int(line)
    if guess == secret:
        print("correct", flush=True)
        open(sys.argv[2], "w").write(str(turn))
        sys.exit(0)
    print("lower" if secret < guess else "higher", flush=True)
print("too many guesses", file=sys.stderr)
sys.exit(1)
"""
"""A number from 1 to 1000 in ten guesses, by testlib's protocol; writes how many were wrong."""
KATTIS_GUESS = """
import os, sys

secret = int(open(sys.argv[1]).read())
for turn in range(10):
    line = sys.stdin.readline()
    if line.strip() == str(secret):
        print("correct", flush=True)
        sys.exit(42)
    if not line.strip().isdigit():
        break
    print("lower" if secret < int(line) else "higher", flush=True)
with open(os.path.join(sys.argv[3], "judgemessage.txt"), "w") as message:
    message.write("no guess was right")
sys.exit(43)
"""
"""The same by Kattis' protocol."""
CPP_GUESS = """
#include <fstream>
#include <iostream>
int main(int, char** names) {
    std::ifstream file(names[1]);
    int secret, guess;
    file >> secret;
    for (int turn = 0; turn < 10; ++turn) {
        if (!(std::cin >> guess)) return 2;
        if (guess == secret) { std::cout << "correct" << std::endl; return 0; }
        std::cout << (secret < guess ? "lower" : "higher") << std::endl;
    }
    return 1;
}"""
"""The same in C++."""
BISECT = """
low, high = 1, 1000
while True:
    guess = (low + high) // 2
    print(guess, flush=True)
    said = input()
    if said == "correct":
        break
    if said == "lower":
        high = guess - 1
    else:
        low = guess + 1
"""
"""A right program."""
CPP_BISECT = """
#include <iostream>
#include <string>
int main() {
    int low = 1, high = 1000;
    while (true) {
        int guess = (low + high) / 2;
        std::cout << guess << std::endl;
        std::string said;
        std::cin >> said;
        if (said == "correct") return 0;
        if (said == "lower") high = guess - 1; else low = guess + 1;
    }
}"""
"""A right program in C++."""
COUNT = "guess = 0\nwhile True:\n    guess += 1\n    print(guess, flush=True)\n    input()\n"
"""Guesses too often."""
AT_ONCE = """
import sys

wrong = open(sys.argv[2]).read()
print(wrong, "wrong", file=sys.stderr)
sys.exit(0 if wrong == "0" else 1)
"""
"""A checker of what the interactor wrote: the first guess must be right."""


def guess_problem(**fields: object) -> Problem:
    """Two secrets, guessed by testlib's protocol unless the fields say otherwise."""
    settings = {
        "id": "guess",
        "tests": ({"input": "37", "output": ""}, {"input": "512", "output": ""}),
        "interactor": Interactor(code=GUESS),
        "time_limit_seconds": 2.0,
        **fields,
    }
    return Problem.model_validate(settings)


BY_INTERACTOR = {
    "testlib": Interactor(code=GUESS),
    "kattis": Interactor(code=KATTIS_GUESS, protocol="kattis"),
    "cpp": Interactor(code=CPP_GUESS, language="cpp"),
}
"""The same problem's interactors."""
CHECKED = guess_problem(
    tests=({"input": "500", "output": ""},), checker=Checker(type="program", code=AT_ONCE)
)
"""A problem whose checker judges what its interactor wrote."""
