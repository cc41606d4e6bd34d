"""Judges of other projects, and `in_process`:
`microcoder audit-judge --judge examples/judges/peers.py:NAME=WHERE`.

Each function takes what is behind the `=` (a checkout, a file, an address) and returns two things:
a function from a case to True, False, or None if the judge says that it could not tell; and a text
about the judge's version. A case is a dictionary: `code`, `tests` (pairs of input and expected
output), `fn_name`, `time_limit_seconds`. The file runs in the judge's throw-away process with the
standard library and the judge itself, no more; `yardstick_judges` is there what the package's own
judges are made of (`microcoder/lab/yardstick/contained/judges.py`).
"""

import ast
import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import types
import urllib.request
from collections.abc import Callable
from typing import Any

from yardstick_judges import by_its_signature, import_file, list_tests, plain  # pyrefly: ignore

Ask = Callable[[dict[str, Any]], "bool | None"]

ABILITIES = {
    "open_r1": ["packages"],
    "sandbox_fusion": ["packages"],
    "inspect": ["function", "packages", "only-function"],
}
"""Judge -> the abilities that cases may need of it, unless these are functions and packages."""
SERVICES = ["sandbox_fusion", "nemo_verify"]
"""Judges behind a service, which runs the programs on its own machine:
there is nothing to isolate here.
"""


def in_process(path: str) -> tuple[Ask, str]:
    """`exec` in the judge's own process, under an alarm."""

    def ask(case: dict[str, Any]) -> bool:
        def stop(*_: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGALRM, stop)
        try:
            for given, expected in case["tests"]:
                signal.alarm(max(1, math.ceil(case["time_limit_seconds"])))
                if not _execute(case, given, expected):
                    return False
        except (Exception, SystemExit):
            return False
        finally:
            signal.alarm(0)
        return True

    return ask, f"Python {sys.version.split()[0]}"


def _execute(case: dict[str, Any], given: str, expected: str) -> bool:
    names: dict[str, Any] = {"__name__": "__main__"}
    if case.get("fn_name"):
        exec(case["code"], names)
        owner = names["Solution"]() if "Solution" in names else None
        function = getattr(owner, case["fn_name"]) if owner is not None else names[case["fn_name"]]
        return function(*map(json.loads, given.split("\n"))) == json.loads(expected)
    output = io.StringIO()
    stdin = sys.stdin
    sys.stdin = io.StringIO(given)
    try:
        with contextlib.redirect_stdout(output):
            exec(case["code"], names)
    finally:
        sys.stdin = stdin
    return output.getvalue().strip() == expected.strip()


def livecodebench(path: str) -> tuple[Ask, str]:
    """LiveCodeBench's `check_correctness`, from a checkout."""
    sys.path.insert(0, path)
    module = importlib.import_module("lcb_runner.evaluation.compute_code_generation_metrics")
    return by_its_signature(module.check_correctness), ""


def nemo_gym(path: str) -> tuple[Ask, str]:
    """NeMo-Gym's copy, from its `resources_servers/code_gen`; without Ray,
    which only carries the call elsewhere.
    """
    sys.path.insert(0, path)
    if importlib.util.find_spec("ray") is None:
        ray = types.ModuleType("ray")
        ray.remote = lambda **_: lambda function: function  # pyrefly: ignore[missing-attribute]
        sys.modules["ray"] = ray
    module = importlib.import_module("lcb_integration.compute_code_generation_metrics")
    return by_its_signature(module.check_correctness), ""


def apps(path: str) -> tuple[Ask, str]:
    """APPS' `run_test`, from the file, in a process a call with a global limit,
    as its own evaluation does.
    """
    sys.path.insert(0, os.path.dirname(path))
    module = import_file(path)

    def ask(case: dict[str, Any]) -> bool:
        import multiprocessing

        tests = list_tests(case)
        if case.get("fn_name"):
            tests["inputs"] = [list(map(json.loads, one.split("\n"))) for one in tests["inputs"]]
            tests["outputs"] = [json.loads(one) for one in tests["outputs"]]
        module.timeout = math.ceil(case["time_limit_seconds"])  # pyrefly: ignore[missing-attribute]
        with multiprocessing.Manager() as manager:
            results = manager.list()

            def run() -> None:
                results.append(
                    module.run_test(problem={"input_output": tests}, test=case["code"], debug=False)
                )

            process = multiprocessing.Process(target=run)
            process.start()
            process.join(timeout=10)
            if process.is_alive():
                process.kill()
            found = list(results[0]) if len(results) else [-1]
        # A result is True, False, -1 or -2; of APPS' own mean over tests,
        # all of them must be right.
        return bool(found) and all(plain(one) is True for one in found)

    return ask, ""


def verl_prime_code(path: str) -> tuple[Ask, str]:
    """verl's `reward_score.prime_code`, from a checkout or site-packages,
    without the rest of verl.
    """
    folder = os.path.join(path, "verl", "utils", "reward_score", "prime_code")
    sys.path.insert(0, path)
    names = ["verl", "verl.utils", "verl.utils.reward_score"]
    for depth, name in enumerate(names):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(path, *names[depth].split("."))]
        sys.modules.setdefault(name, package)
    module = importlib.import_module("verl.utils.reward_score.prime_code")
    assert os.path.dirname(module.__file__ or "") == folder

    def ask(case: dict[str, Any]) -> bool:
        # As verl's own `default_compute_score` calls it.
        score, _ = module.compute_score(
            f"```python\n{case['code']}\n```",
            list_tests(case),
            continuous=True,
        )
        return float(score) == 1.0

    return ask, _version("verl", path)


def rllm(path: str) -> tuple[Ask, str]:
    """rllm's `lcb_check_correctness_v2`, from a checkout."""
    sys.path.insert(0, path)
    module = importlib.import_module("rllm.rewards.code_reward")

    def ask(case: dict[str, Any]) -> bool:
        found = module.lcb_check_correctness_v2(
            _samples(case),
            case["code"],
            timeout=math.ceil(case["time_limit_seconds"]),
        )
        return bool(found[0] if isinstance(found, tuple) else found)

    return ask, ""


def skyrl_gym(path: str) -> tuple[Ask, str]:
    """skyrl-gym's environment `lcb`, as it is installed, or from the folder that holds it."""
    if path:
        sys.path.insert(0, path)
    module = importlib.import_module("skyrl_gym.envs.lcb.livecodebench")

    def ask(case: dict[str, Any]) -> bool:
        return module.compute_score(f"```python\n{case['code']}\n```", _samples(case))[1] == 1.0

    return ask, _version("skyrl-gym", path)


def open_r1(path: str) -> tuple[Ask, str]:
    """open-r1's `code_reward`: the script of its `rewards.py`,
    run here and not in a rented sandbox.
    """
    with open(path) as file:
        tree = ast.parse(file.read())
    (function,) = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "code_reward"
    )
    (template,) = (
        str(ast.literal_eval(node.value))
        for node in function.body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "evaluation_script_template"
    )

    def ask(case: dict[str, Any]) -> bool:
        tests = json.dumps(
            [{"input": given, "output": expected} for given, expected in case["tests"]]
        )
        script = textwrap.dedent(
            template.format(code=json.dumps(case["code"]), test_cases=json.dumps(tests))
        )
        # Its sandboxes return the value of the last line.
        script = re.sub(
            r"^(evaluate_code\(code_snippet.*)$",
            r"print(\1)",
            script,
            flags=re.MULTILINE,
        )
        seconds = 6 * len(case["tests"]) + 10
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return done.returncode == 0 and float(done.stdout.strip().splitlines()[-1]) == 1.0

    return ask, ""


def inspect(path: str) -> tuple[Ask, str]:
    """inspect_ai's local sandbox, asked as the scorers of inspect_evals' HumanEval and MBPP do:
    code, then asserts.
    """
    import asyncio

    from inspect_ai.util._sandbox.local import LocalSandboxEnvironment  # pyrefly: ignore

    async def run(code: str, seconds: int) -> bool:
        sandbox = LocalSandboxEnvironment()
        return (await sandbox.exec(["python", "-c", code], timeout=seconds)).success

    def ask(case: dict[str, Any]) -> bool:
        # HumanEval's answers are plain functions; a method is called as its class has it.
        owner = "Solution()." if re.search(r"^class Solution\b", case["code"], re.MULTILINE) else ""
        calls = []
        for given, expected in case["tests"]:
            arguments = ", ".join(repr(json.loads(line)) for line in given.split("\n"))
            called = f"{owner}{case['fn_name']}({arguments})"
            calls.append(f"assert {called} == {json.loads(expected)!r}")
        try:
            return asyncio.run(
                run(case["code"] + "\n" + "\n".join(calls), math.ceil(case["time_limit_seconds"]))
            )
        except TimeoutError:
            return False

    return ask, f"inspect_ai {importlib.metadata.version('inspect_ai')}"


def sandbox_fusion(url: str) -> tuple[Ask, str]:
    """A SandboxFusion server: `/run_code` for each test, stripped output compared,
    as verl's client does.
    """

    def ask(case: dict[str, Any]) -> bool | None:
        for given, expected in case["tests"]:
            seconds = case["time_limit_seconds"]
            asked = {
                "code": case["code"],
                "language": "python",
                "stdin": given,
                "run_timeout": seconds,
            }
            answer = _post(url.rstrip("/") + "/run_code", asked, 6 * seconds + 10)
            if answer.get("status") == "SandboxError":
                return None
            run = answer.get("run_result") or {}
            if (
                answer.get("status") != "Success"
                or (run.get("stdout") or "").rstrip() != expected.rstrip()
            ):
                return False
        return True

    return ask, url


def nemo_verify(url: str) -> tuple[Ask, str]:
    """A NeMo-Gym resources server of kind `code_gen`: `/verify`; a masked sample is no answer."""

    def ask(case: dict[str, Any]) -> bool | None:
        text = {"annotations": [], "text": f"```python\n{case['code']}\n```", "type": "output_text"}
        said = {
            "id": "m",
            "content": [text],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        }
        response = {
            "id": "r",
            "created_at": 0.0,
            "model": "none",
            "object": "response",
            "output": [said],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        }
        asked = {
            "responses_create_params": {"input": [{"role": "user", "content": "Solve it."}]},
            "response": response,
            "verifier_metadata": {"unit_tests": list_tests(case)},
        }
        answer = _post(url.rstrip("/") + "/verify", asked, 120.0)
        return None if answer.get("mask_sample") else answer["reward"] == 1.0

    return ask, url


def _samples(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tests one by one, as LiveCodeBench's releases have them."""
    name = case.get("fn_name")
    if name:
        kind = {"testtype": "functional", "metadata": {"func_name": name}}
    else:
        kind = {"testtype": "stdin"}
    return [{"input": given, "output": expected, **kind} for given, expected in case["tests"]]


def _post(url: str, message: dict[str, Any], seconds: float) -> dict[str, Any]:
    request = urllib.request.Request(
        url,
        json.dumps(message).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        return json.load(answer)


def _version(package: str, path: str) -> str:
    found = importlib.metadata.distributions(name=package, path=[path] if path else sys.path)
    return next((f"{package} {one.version}" for one in found), "")
