"""Our judge with errors put in: so many wrong programs accepted, so many right ones refused.

For studies only.
"""

import ast
import hashlib
from typing import Literal

from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Problem, Program, Rollout, Verdict

Kind = Literal["random", "systematic"]
Trait = Literal["program", "constants"]
"""Unit of a systematic error: one program, or all programs with the same constants."""


def noisy_verdict(
    problem: Problem,
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
    draw: float,
    *,
    false_accepts: float = 0.0,
    false_rejects: float = 0.0,
    kind: Kind = "random",
    trait: Trait = "program",
    pattern: int = 0,
) -> float:
    """Return 1 for accepted and 0 for refused, turned round for some programs.

    `random` errors fall on any rollout anew. `systematic` ones fall on programs: which, is a digest
    of what is asked for as `trait`, so a program is judged wrongly on whichever problem it is wrong
    (or right), every time, as weak tests do with `print("NO")`. A response without a program is
    never accepted.

    Args:
        problem: not looked at. rollout: not looked at. program: what `systematic` errors depend on.
        verdict: what our judge says. draw: uniform in [0, 1), what `random` errors depend on.
        false_accepts: share of the wrong programs that are accepted. false_rejects: share of the
        right programs that are refused. kind: what an error depends on. trait: what a systematic
        one falls on: a program without layout and comments, or its constants alone. The
            latter can be had on any problem, whatever else the program must hold.
        pattern: another one draws other programs to be wrong about.
    """
    if program.code is None:
        return 0.0
    place = draw if kind == "random" else place_program(program.code, pattern, trait=trait)
    is_turned = place < (false_rejects if verdict.is_accepted else false_accepts)
    return float(verdict.is_accepted != is_turned)


noisy_verdict.needs_draw = True  # pyrefly: ignore[missing-attribute]


def place_program(code: str, pattern: int, *, trait: Trait = "program") -> float:
    """Return a program's place in [0, 1), the same for every program with the same trait."""
    try:
        tree = parse_source(code)
        constants = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                constants.append(node.value)
        text = ast.dump(tree) if trait == "program" else f"constants {constants!r}"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        text = code
    digest = hashlib.blake2b(
        f"{pattern}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
    return int.from_bytes(digest, "big") / 2**64
