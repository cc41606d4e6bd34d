"""Responses whose fence the prompt opened, that go on into made-up turns,
or that hold special tokens.
"""

from typing import Final

CODE: Final = "n = int(input())\nprint(n * 2)\n"
"""The program of every response; a layout of another one names it."""
_BLOCK = f"```python\n{CODE}```"
_OTHER = "```python\nprint('of the made-up turn', input())\n```"
_DOCSTRING = '''def f(n):
    """Doubles.

    ```
    >>> f(1)
    2
    ```
    """
    return 2 * n
'''
_CLASS = "class Solution:\n    def f(self, n):\n        return 2 * n\n"
_BROKEN = "n = int(input()\nprint(n * 2)\n"


def _indent(code: str) -> str:
    return "".join("   " + line for line in code.splitlines(keepends=True))


PREFILLED: Final[dict[str, tuple[str, str]]] = {
    "a lone closing fence": (f"{CODE}```", CODE),
    "prose behind it": (f"{CODE}```\nThis doubles the number.\n", CODE),
    "prose on the line of the fence": (f"{CODE}``` This doubles it.\n", CODE),
    "a sample output behind it": (f"{CODE}```\n\nOutput:\n```\n10\n```\n", CODE),
    "a tagged output behind it": (f"{CODE}```\n\nOutput:\n```text\n10\n```\n", CODE),
    "input and output behind it": (
        f"{CODE}```\nInput:\n```\n5\n```\nOutput:\n```\n10\n```\nDone.\n",
        CODE,
    ),
    "an example behind it": (
        f"{_CLASS}```\nUse:\n```python\nprint(Solution().f(2))\n```\n",
        _CLASS,
    ),
    "an example that stands alone": (
        f"{CODE}```\nFor instance:\n```python\nn = int('5')\nprint(n * 2)\n```\n",
        CODE,
    ),
    "another program behind it": (f"{CODE}```\nOr shorter:\n{_OTHER}\n", CODE),
    "tildes": (f"{CODE}~~~\nOutput:\n~~~\n10\n~~~\n", CODE),
    "an indented list item": (f"{_indent(CODE)}   ```\n   Done.\n", CODE),
    "a fence behind the code": (f"{CODE[:-1]}```\nDone.", CODE[:-1]),
    "windows line ends": (f"{CODE}```\nDone.".replace("\n", "\r\n"), CODE.replace("\n", "\r\n")),
    "the tag is left over": (f"python\n{CODE}```\nDone.", CODE),
    "a docstring with fences": (f"{_DOCSTRING}```\nDone.\n", _DOCSTRING),
    "a shell line behind it": (f"{CODE}```\nRun:\n```bash\npython a.py\n```\n", CODE),
    "a program that does not compile": (f"{_BROKEN}```\nOutput:\n```\n10\n```\n", _BROKEN),
    "an end token behind it": (f"{CODE}```<|im_end|>", CODE),
    "a made-up turn behind it": (f"{CODE}```<|eot_id|>user\n\nAnd?{_OTHER}", CODE),
    "thinking before it": (f"<think>Hm.</think>\n{CODE}```\nDone.", CODE),
}
"""What follows the program -> a response whose opening fence stands in the prompt,
and the program.
"""

_TURNS = {
    "ChatML": "<|im_end|>\n<|im_start|>user\nNow add one.<|im_end|>\n<|im_start|>assistant\n",
    "ChatML without its end": "\n<|im_start|>user\nNow add one.\n<|im_start|>assistant\n",
    "Llama 2": " </s><s>[INST] Now add one. [/INST] ",
    "Llama 2 without its end": "\n[INST] Now add one. [/INST]\n",
    "Llama 3": "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAdd.<|eot_id|>",
    "Llama 3 without its end": "\n<|start_header_id|>user<|end_header_id|>\n\nAdd.\n",
    "Llama 4": "<|eot|><|header_start|>user<|header_end|>\n\nAdd one.<|eot|>",
    "Gemma": "<end_of_turn>\n<start_of_turn>user\nAdd.<end_of_turn>\n<start_of_turn>model\n",
    "Gemma without its end": "\n<start_of_turn>user\nAdd.\n<start_of_turn>model\n",
    "Phi": "<|end|>\n<|user|>\nAdd one.<|end|>\n<|assistant|>\n",
    "DeepSeek": (
        "<\uff5cend\u2581of\u2581sentence\uff5c><\uff5cUser\uff5c>Add.<\uff5cAssistant\uff5c>"
    ),
    "DeepSeek's end alone": "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "DeepSeek's end on a line": "\n<\uff5cend\u2581of\u2581sentence\uff5c>\nAdd one.\n",
    "DeepSeek's tools": "\n<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "Seed Coder": "<[end\u2581of\u2581sentence]><[begin\u2581of\u2581sentence]>user\nAdd.\n",
    "Magicoder": "\n@@ Instruction\nAdd one.\n\n@@ Response\n",
    "INCITE": "\n<human>: Add one.\n<bot>: ",
    "a token on a line, and a fence": "\n<|im_end|>",
    "DeepSeek Coder": "\n<|EOT|>\n### Instruction:\nAdd one.\n### Response:\n",
    "Mistral": "</s>[INST] Add one. [/INST]",
    "GPT and Qwen": "<|endoftext|>Question 2. Add one.\n",
    "gpt-oss": "<|return|><|start|>user<|message|>Add.<|end|><|start|>assistant<|message|>",
    "gpt-oss without its end": "<|end|><|start|>user<|message|>Add.<|end|><|start|>assistant",
    "gpt-oss, thinking anew": (
        "<|return|><|start|>user<|message|>Add.<|end|><|start|>assistant<|channel|>analysis"
        "<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
    ),
    "Command": "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Add.<|CHATBOT_TOKEN|>",
    "GLM": "<|user|>\nAdd one.\n<|assistant|>\n",
    "GLM's tools": "<|observation|>\n10\n<|assistant|>\n",
    "Granite": "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Add.<|end_of_text|>\n",
    "StarCoder": "<|endoftext|><file_sep>src/other.py\n",
    "another file": "<file_sep>src/other.py\n",
    "EXAONE": "[|endofturn|]\n[|user|]Add one.\n[|assistant|]",
    "Zephyr": "</s>\n<|user|>\nAdd one.</s>\n<|assistant|>\n",
    "Vicuna": "</s>USER: Add one. ASSISTANT: ",
    "Vicuna without its end": "\nUSER: Add one.\nASSISTANT: ",
    "thinking anew": (
        "<|im_end|>\n<|im_start|>user\nAdd.\n<|im_start|>assistant\n<think>Hm.</think>\n"
    ),
    "Guanaco": "\n### Human: Add one.\n### Assistant: ",
    "Alpaca": "\n\n### Instruction:\nAdd one.\n\n### Response:\n",
    "people": "\n\nHuman: Add one.\n\nAssistant: ",
    "people, in a row": "\nUser: Add one.\nAssistant: ",
    "people, after prose": "\nThis doubles it.\n\nUser: Add one.\n\nAssistant: ",
    "people, in bold": "\n\n**User:** Add one.\n\n**Assistant:** ",
    "few shots": "\n\nQ: Add one.\nA: ",
    "numbered problems": "\n\nProblem 2: Add one.\nSolution: ",
    "LiveCodeBench's headings": "\n\n### Question:\nAdd one.\n\n### Answer:\n",
    "MBPP's few shots": "\n[DONE]\nYou are an expert Python programmer.\n[BEGIN]\n",
}
RUNS_ON: Final[dict[str, tuple[str, str]]] = {
    name: (f"It doubles.\n{_BLOCK}{turn}{_OTHER}\n", CODE) for name, turn in _TURNS.items()
}
"""Chat template -> a response that goes on into a made-up turn, and the program."""

_DEEPSEEK = "<\uff5cend\u2581of\u2581sentence\uff5c>"
_NAMES_TOKENS = "print('<|im_end|>')\nprint('''\nUser: hello\n<|eot_id|>\n''', input())\n"
_LATER = f"Double it.\n\nUser: 5\nBot: 10\n\n{_BLOCK}\n"
TOKENS: Final[dict[str, tuple[str, str]]] = {
    "before the closing fence": (f"```python\n{CODE[:-1]}<|im_end|>\n```\n", CODE[:-1]),
    "on a line before the closing fence": (f"```python\n{CODE}</s>\n```\n", CODE),
    "DeepSeek's, before the closing fence": (
        f"```python\n{CODE[:-1]}{_DEEPSEEK}\n```\n",
        CODE[:-1],
    ),
    "DeepSeek's, in place of it": (f"```python\n{CODE[:-1]}{_DEEPSEEK}", CODE[:-1]),
    "DeepSeek's, in a string": (
        f"```python\nprint('{_DEEPSEEK}', input())\n```\n",
        f"print('{_DEEPSEEK}', input())\n",
    ),
    "DeepSeek's, in a block behind prose": (
        f"Doubled:\n```python\n{CODE}{_DEEPSEEK}\n```\n",
        CODE,
    ),
    "Seed Coder's, before the closing fence": (
        f"```python\n{CODE[:-1]}<[end\u2581of\u2581sentence]>\n```\n",
        CODE[:-1],
    ),
    "two of them": (f"```python\n{CODE[:-1]}<|eot_id|><|endoftext|>\n```", CODE[:-1]),
    "a fence that is never closed": (f"```python\n{CODE}<|im_end|>", CODE),
    "a fence that is never closed, and a turn": (
        f"```python\n{CODE}<|im_end|>\n<|im_start|>user\nAdd.\n<|im_start|>assistant\n{_OTHER}",
        CODE,
    ),
    "before the code": (f"```python\n<s>[INST]\n{CODE}```\n", f"\n{CODE}"),
    "at the start of the response": (f"<|im_start|>assistant\n{_BLOCK}<|im_end|>", CODE),
    "Llama's header at the start": (
        f"<|start_header_id|>assistant<|end_header_id|>\n\n{_BLOCK}<|eot_id|>",
        CODE,
    ),
    "strings of the program": (f"```python\n{_NAMES_TOKENS}```\n", _NAMES_TOKENS),
    "strings of the program, and a turn": (
        f"```python\n{_NAMES_TOKENS}```\n<|im_end|>\n<|im_start|>user\nAdd.\n{_OTHER}",
        _NAMES_TOKENS,
    ),
    "prose about one": (f"The token `<|im_end|>` is not needed.\n{_BLOCK}\n", CODE),
    "a sample before the program": (_LATER, CODE),
    "a sample between a draft and the program": (
        (
            "```python\n"
            "print(int(input()) + 1)\n"
            "```\n"
            "A sample:\n\n"
            "User: 5\n"
            "Bot: 10\n\n"
            "So:\n"
            f"{_BLOCK}\n"
        ),
        CODE,
    ),
    "struck-out text": (f"We <s>add</s> double it.\n{_BLOCK}\n", CODE),
    "a thought about one": (
        f"<think>\nIt reads <|im_start|>user first.\n</think>\n{_BLOCK}\n",
        CODE,
    ),
}
"""Where a special token, or a word that could begin a turn, stands -> a response,
and the program.
"""

_BROKEN_BLOCK = "```python\nprint(int(input()) * 2\n```"
_BROKEN_CODE = "print(int(input()) * 2\n"
NO_PROGRAMS: Final[dict[str, tuple[str, str]]] = {
    **{
        f"{name} behind a program that does not compile": (
            f"{_BROKEN_BLOCK}\nThen:\n{shown}\n",
            _BROKEN_CODE,
        )
        for name, shown in {
            "an installation": "```python\npip install numpy\n```",
            "a shell line": "```python\n$ python a.py\n```",
            "a command": "```\npython3 a.py < in.txt\n```",
            "an output": "```python\n10\n20\n```",
            "a word": "```python\nYES\n```",
            "prose": "```python\nRead the number and double it\n```",
            "a session": "```python\n>>> f(5)\n10\n```",
            "JSON": '```python\n{"n": [1, true]}\n```',
            "a diff": "```python\n print(1)\n-print(2)\n+print(3)\n```",
            "an error": "```python\nTraceback (most recent call last):\n  File x\n```",
        }.items()
    },
    "an output behind an untagged program that does not compile": (
        f"```\n{_BROKEN_CODE}```\nOutput:\n```\nYES\n```\n",
        _BROKEN_CODE,
    ),
}
"""What stands behind the program -> a response in which the program is the only block that can be
one.
"""

_IMPORTS = "from math import gcd\nprint(gcd(*map(int, input().split())))\n"
MARKED: Final[dict[str, tuple[str, str | None]]] = {
    "CodeLlama's marks": (f"[PYTHON]\n{CODE}[/PYTHON]\nIt doubles.\n", CODE),
    "CodeLlama's marks behind prose": (f"Sure.\n[PYTHON]\n{CODE}[/PYTHON]", CODE),
    "CodeLlama's marks, cut by a stop": (f"[PYTHON]\n{CODE}", CODE),
    "CodeLlama's marks on the lines of code": (f"[PYTHON]\n{CODE[:-1]}[/PYTHON]\n", CODE[:-1]),
    "CodeLlama's marks and tests": (
        f"[PYTHON]\n{_CLASS}[/PYTHON]\n[TESTS]\nassert Solution().f(1) == 2\n[/TESTS]\n",
        _CLASS,
    ),
    "an element of HTML": (f"So:\n<pre><code class='python'>{CODE}</code></pre>\nDone.\n", CODE),
    "an element of HTML with escapes": (
        "<code>\nn = int(input())\nif n &lt; 3:\n    print(n)\n</code>",
        "n = int(input())\nif n < 3:\n    print(n)\n",
    ),
    "an element of HTML and an output": (f"<pre>{CODE}</pre>\n<pre>10</pre>\n", CODE),
    "words in HTML": ("Take <code>sorted(a)</code> of <code>a</code>.\n", None),
    "words in HTML beside a fence": (f"Take <code>n = 1\nprint(n)</code>:\n{_BLOCK}\n", CODE),
    "an answer": (f"<think>Hm.</think>\n<answer>\n{CODE}</answer>", CODE),
    "an answer that is none": ("<think>Hm.</think>\n<answer>\n42\n</answer>", None),
    "code on the line of the fence": (f"```python {_IMPORTS}```\n", _IMPORTS),
    "code on the line of the fence, and an output": (
        f"```py {_IMPORTS}```\nOutput:\n```\n3\n```\n",
        _IMPORTS,
    ),
    "an assignment on the line of the fence": (f"```python {CODE}```\n", CODE),
    "all of the code on the line of the fence": (
        "```python print(int(input()) * 2)\n```\n",
        "print(int(input()) * 2)\n",
    ),
    "a fence closed with fewer marks": (f"````python\n{CODE}```\nIt doubles.\n", CODE),
    "an attribute on the line of the fence": (f"```python title = 'a.py'\n{CODE}```\n", CODE),
    "a file on the line of the fence": (f"```python a.py\n{CODE}```\n", CODE),
    "a quotation in a quotation": (
        "> > ```python\n" + "".join(f"> > {line}\n" for line in CODE.splitlines()) + "> > ```\n",
        CODE,
    ),
}
"""Where a program stands that no plain fence holds -> a response, and the program;
None where there is none.
"""
