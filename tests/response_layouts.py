"""Responses in layouts that models use, with the program that a human would take from each."""

from textwrap import dedent
from typing import Final

CODE: Final = "n = int(input())\nprint(n + 1)\n"
"""The program of every response; a layout of another one names it."""
_BLOCK = f"```python\n{CODE}```"
_DOCSTRING = '''def f(n):
    """Adds one.

    ```
    >>> f(1)
    2
    ```
    """
    return n + 1

print(f(int(input())))
'''
_TAGGED_DOCSTRING = _DOCSTRING.replace("    ```\n    >>>", "    ```python\n    >>>")
_PRINTS_FENCES = 's = """```python\nx = 1\n```"""\nprint(s)\n'
_COMMENT = f"# </think> was here\n{CODE}"
_TEXT = "s = '<think>'\nprint(s, '</think>')\n"
_SOLVE = "def solve(n):\n    return n + 1\n"
_BRANCH = "if int(input()):\n   print(1)\n"
_DRAFT = f"```python\n{_SOLVE}\nprint(solve(int(input())))\n```"
_METHOD = "class Solution:\n    f = ListNode\n"
_OPENS_FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"
_THINKING = {f"<{tag}>": f"</{tag}>" for tag in ("THINK", "thinking", "seed:think", "mm:think")}
_THINKING |= {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
}
_THINKING |= {"<|channel|>analysis<|message|>": _OPENS_FINAL, "analysis": "assistantfinal"}
_ADD = "    def add(self, n):\n        return n + 1\n"
_MAIN = "def main():\n    print(input())\n"
_CLASS = f"class Solution:\n{_ADD}"
_BROKEN = "print(  # </think>\n"
_ENDS = '"""\n</think>\n"""\n'
_MAP = f"# ..#\n# ...#\n{CODE}"
_G = "def g():\n    pass\n"
_OS = "import os\nprint(os.read(0, 9))\n"
_QUOTES_FENCE = "x = '''\n```\n'''\n"


def _indent(code: str, by: str) -> str:
    return "".join(by + line for line in code.splitlines(keepends=True))


LAYOUTS: Final[dict[str, tuple[str, str]]] = {
    # Text before the opening fence or behind the closing one.
    "prose behind the closing fence": (f"{_BLOCK} This reads one number.\n", CODE),
    "prose that begins like a tag": (f"{_BLOCK}Output is one number.\n", CODE),
    "a full stop behind the closing fence": (f"The program:\n{_BLOCK}.\nDone.", CODE),
    "a closing tag behind the closing fence": (f"<answer>\n{_BLOCK}</answer>", CODE),
    "bold text before the fence": (f"**Answer:** {_BLOCK}\n", CODE),
    "a heading before the fence": (f"### Solution {_BLOCK}\n", CODE),
    "prose before the fence": (f"Here it is: {_BLOCK}\nIt adds one.", CODE),
    "inline code before the fence": (f"Read `n`, then ``n + 1``: {_BLOCK}\n", CODE),
    "an untagged fence behind text": (f"Answer: ```\n{CODE}```\n", CODE),
    "a channel before the fence": (f"<|channel|>final<|message|>{_BLOCK}<|return|>", CODE),
    "an answer's tag before the fence": (f"<answer>{_BLOCK}\n</answer>", CODE),
    "boxed": (f"\\boxed{{{_BLOCK}}}", CODE),
    "boxed, on lines of its own": (f"\\[\n\\boxed{{\n{_BLOCK}\n}}\n\\]", CODE),
    "the closing fence behind the code": (f"```python\n{CODE[:-1]}```\nDone.", CODE[:-1]),
    "a dollar behind the closing fence": (f"{_BLOCK}$", CODE),
    # Spaces and indentation.
    "a no-break space before the fence": (f"Here:\n\u00a0{_BLOCK}\n", CODE),
    "a no-break space before both fences": (f"\u00a0```python\n{CODE}\u00a0```\n", CODE),
    "a zero-width space before the fence": (f"\u200b{_BLOCK}\n", CODE),
    "a byte order mark before the fence": (f"\ufeff{_BLOCK}\n", CODE),
    "a no-break space behind the tag": (f"```python\u00a0\n{CODE}```\u00a0\n", CODE),
    "a wide space before the fence": (f"\u3000{_BLOCK}\n", CODE),
    "no-break spaces in the code": (
        "```python\nif int(input()):\n\u00a0\u00a0\u00a0print(1)\n```\n",
        _BRANCH,
    ),
    "indented in a list item": (
        f"1. Read it:\n\n   ```python\n{_indent(CODE, '   ')}   ```\n",
        CODE,
    ),
    "indented by a tab": (f"- Read it:\n\n\t```python\n{_indent(CODE, chr(9))}\t```\n", CODE),
    "a list item that opens with the fence": (f"- ```python\n{_indent(CODE, '  ')}  ```\n", CODE),
    "indented in a list in a list": (
        f"1. A\n    - B\n\n      ```python\n{_indent(CODE, '      ')}      ```\n",
        CODE,
    ),
    "only the code is indented": (f"```python\n{_indent(CODE, '    ')}```\n", CODE),
    "only the fence is indented": (f"   ```python\n{_BRANCH}   ```\n", _BRANCH),
    "quoted": ("> Answer:\n>\n> ```python\n" + _indent(CODE, "> ") + "> ```\n", CODE),
    "quoted, with an empty line": (
        "> ```python\n> n = 1\n>\n> print(n)\n> ```\n",
        "n = 1\n\nprint(n)\n",
    ),
    "escaped for a page": (
        "```python\nif 1 &lt; int(input()):\n    print(&quot;a&quot;)\n```",
        'if 1 < int(input()):\n    print("a")\n',
    ),
    "escapes that the program is about": ("```python\nprint('&lt;')\n```", "print('&lt;')\n"),
    "windows line ends": (_BLOCK.replace("\n", "\r\n"), CODE.replace("\n", "\r\n")),
    "windows line ends, text before the fence": (
        f"So: {_BLOCK}".replace("\n", "\r\n"),
        CODE.replace("\n", "\r\n"),
    ),
    # Fences inside.
    "a docstring with fences": (f"```python\n{_DOCSTRING}```\nDone.", _DOCSTRING),
    "a docstring with tagged fences": (
        f"```python\n{_TAGGED_DOCSTRING}```\nDone.",
        _TAGGED_DOCSTRING,
    ),
    "a program that prints fences": (f"```python\n{_PRINTS_FENCES}```\n", _PRINTS_FENCES),
    "a docstring with fences, then the output": (
        f"```python\n{_DOCSTRING}```\nIt prints:\n```\n3\n```\n",
        _DOCSTRING,
    ),
    "a draft that is never closed": (
        f"```python\nprint(1)\nWait, better:\n\n```python\n{CODE}```\n",
        CODE,
    ),
    "an inline fence in prose": (f"Put it between ``` marks.\n{_BLOCK}\n", CODE),
    # Thinking.
    "the end of thinking in a comment": (f"```python\n{_COMMENT}```\n", _COMMENT),
    "the end of thinking in a comment of a broken program": (f"```python\n{_BROKEN}```\n", _BROKEN),
    "the end of thinking in a docstring": (
        f"<think>Hm.</think>\n```python\n{_ENDS}{CODE}```\n",
        f"{_ENDS}{CODE}",
    ),
    "thinking, and its end in a comment": (
        f"<think>Hm.</think>\n```python\n{_COMMENT}```\n",
        _COMMENT,
    ),
    "the marks of thinking in strings": (f"```python\n{_TEXT}```\n", _TEXT),
    "the word <think> before the program": (f"I did not use the <think> tag.\n{_BLOCK}\n", CODE),
    "the word <think> behind the program": (f"{_BLOCK}\nNo `<think>` was needed.\n", CODE),
    "the word </think> behind the program": (
        f"{_BLOCK}\nWhat stands before `</think>` is a draft.\n",
        CODE,
    ),
    "the word </think> without quotes": (f"{_BLOCK}\nIt comes after the </think> tag.\n", CODE),
    "the answer behind the mark": (f"<think>\nHm.\n</think>{_BLOCK}\n", CODE),
    "thinking that ends in mid-line": (f"<think>Add one. </think> Here: {_BLOCK}\n", CODE),
    "thinking that the prompt began": (
        f"Add one.\n```python\nprint(0)\n```\n</think>\n\n{_BLOCK}\n",
        CODE,
    ),
    "thinking that ends in an open draft": (
        f"<think>\n```python\nprint(0)\n</think>\n{_BLOCK}\n",
        CODE,
    ),
    "an open draft that the prompt began": (
        f"So:\n```python\nprint(0)\n</think>\n{_BLOCK}\n",
        CODE,
    ),
    "a draft whose comment names the mark": (
        f"<think>\n```python\n# </think>\n```\n</think>\n{_BLOCK}\n",
        CODE,
    ),
    **{
        f"thinking by {opens}": (
            f"{opens}\n{_DRAFT}{ends}\n```python\nprint(5)\n```\n",
            "print(5)\n",
        )
        for opens, ends in _THINKING.items()
    },
    "a draft that ends on the answer's line": (
        f"<|channel|>analysis<|message|>{_DRAFT}{_OPENS_FINAL}{_BLOCK}",
        CODE,
    ),
    # Fences.
    **{
        f"tag {tag}": (f"```{tag}\n{CODE}```\n", CODE)
        for tag in ("py", "Python3", "c++", "python title=a.py")
    },
    "tildes": (f"~~~python\n{_QUOTES_FENCE}~~~\n", _QUOTES_FENCE),
    "a longer fence": (f"````python\n{_QUOTES_FENCE}````\n", _QUOTES_FENCE),
    "a longer closing fence": (f"```python\n{CODE}`````\n", CODE),
    # What follows the program.
    "the output behind it": (f"{_BLOCK}\nOutput:\n```\n3\n```\n", CODE),
    "a tagged output behind it": (f"{_BLOCK}\nOutput:\n```text\n3\n```\n", CODE),
    "a shell line behind it": (f"{_BLOCK}\nRun it:\n```bash\npython main.py < in.txt\n```\n", CODE),
    "an untagged shell line behind it": (f"{_BLOCK}\nRun it:\n```\n$ python main.py\n```\n", CODE),
    "pseudo code behind it": (f"{_BLOCK}\nIn words:\n```\nread n\nprint n plus one\n```\n", CODE),
    "pseudo code tagged as Python": (
        f"{_BLOCK}\nIn words:\n```python\nread n and print n plus one\n```\n",
        CODE,
    ),
    "a diff behind it": (f"{_BLOCK}\nChange:\n```diff\n-print(n)\n+print(n + 1)\n```\n", CODE),
    "an untagged diff behind it": (
        f"{_BLOCK}\nChange:\n```\n-print(n)\n+print(n + 1)\n```\n",
        CODE,
    ),
    "its complexity behind it": (f"{_BLOCK}\n```\nTime: O(1)\n```\n", CODE),
    "an output tagged as Python": (f"{_BLOCK}\nOutput:\n```python\n[1, 2]\n```\n", CODE),
    "data behind it": (f'{_BLOCK}\n```json\n{{"n": 1}}\n```\n', CODE),
    "an untagged program, and its output": (f"```\n{CODE}```\nOutput:\n```\n3\n```\n", CODE),
    "the same program in C++ behind it": (
        f"{_BLOCK}\nIn C++:\n```cpp\nint main() {{}}\n```\n",
        CODE,
    ),
    "an empty block behind it": (f"{_BLOCK}\n```python\n```\n", CODE),
    "a draft whose function is a variable of it": (
        f"```python\ndef n():\n    pass\n```\nBetter:\n{_BLOCK}\n",
        CODE,
    ),
    "a draft, and a program that reads by os": (f"{_DRAFT}\n```python\n{_OS}```", _OS),
    "the given class before it": (
        f"```\nclass ListNode:\n    pass\n```\nSo:\n```python\n{_METHOD}```\n",
        _METHOD,
    ),
    "a test that takes it": (
        f"```\n{_SOLVE}```\n```python\ndef t(solve):\n    solve(1)\nt(solve)\n```\n",
        _SOLVE,
    ),
    "reasons behind it": (
        f"<answer>\n{_BLOCK}\n</answer>\n<reasoning>\nAdd one.\n</reasoning>\n",
        CODE,
    ),
    "a function of it again": (
        f"```\n{_DOCSTRING}{_G}```\nHere\n```python\n{_G}```\n",
        f"{_DOCSTRING}{_G}",
    ),
    "a draft before it": (f"```python\nprint(0)\n```\nBetter:\n{_BLOCK}\n", CODE),
    "a tagged brute force, and an untagged final program": (
        f"{_DRAFT}\nFinal, faster:\n```\n{CODE}```\n",
        CODE,
    ),
    "a line that uses it, tagged as Python": (
        f"```py\n{_SOLVE}```\nSo:\n```py\nprint(solve(2))\n```\n",
        _SOLVE,
    ),
    "tests of it, tagged as Python": (
        f"```py\n{_SOLVE}```\n```py\ndef t(): assert solve(2)\nt()\n```\n",
        _SOLVE,
    ),
    "its steps behind it": (
        f"{_BLOCK}\n1. Read:\n```py\nn = int(input())\n```\n2.\n```py\nprint(n + 1)\n```\n",
        CODE,
    ),
    "a faster input for it": (
        f"{_BLOCK}\n```py\nimport sys\ninput = sys.stdin.readline\n```\n",
        CODE,
    ),
    "its function, not called": (
        f"```py\n{_MAIN}main()\n```\nThus\n```py\n{_MAIN}```\n",
        f"{_MAIN}main()\n",
    ),
    "its method, without the class": (
        f"```py\n{_CLASS}```\nThe idea:\n```py\n{dedent(_ADD)}```\n",
        _CLASS,
    ),
    "a helper of functions again": (
        f"```py\n{_SOLVE}{_G}```\nHere\n```py\n{_G}```\n",
        f"{_SOLVE}{_G}",
    ),
    "a draft, and a program with a map": (f"{_DRAFT}\nFaster:\n```py\n{_MAP}```\n", _MAP),
    "its beginning": (f"{_BLOCK}\n```py\nn = int(input())\n# ... as before\nprint(n)\n```\n", CODE),
    "the input before it": (f"For\n```\n5\n```\n{_BLOCK}\n", CODE),
    "a broken program alone": ("```python\nprint(\n```\n", "print(\n"),
}
"""What it is -> a response, and the program."""
