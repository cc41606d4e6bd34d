"""Adapters of public formats: from a raw row to a candidate. Each is a small file; reading executes nothing."""

from collections.abc import Mapping
from types import MappingProxyType

from microcoder.dataset.formats import (
    apps,
    codecontests,
    codeforces,
    deepcoder,
    doocs,
    hardtests,
    humaneval,
    kattis,
    kodcode,
    leetcode,
    livecodebench,
    mbpp,
    odex,
    rstar,
    synthetic,
    verl,
)
from microcoder.dataset.formats.format import Folders, Format
from microcoder.dataset.formats.row import Malformed, Row

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "unreadable_file": "the file ends early, is damaged, or is not what its name says",
        "not_utf8": "bytes that are no UTF-8",
        "not_json": "a line or item that is no JSON, names a key twice, or is nested too deeply",
        "not_an_object": "JSON, but no object",
        "missing_field": "a field that every row of the format has",
        "wrong_type": "a field of another type than the format's",
        "wrong_value": "a value that no candidate can have",
        "bad_encoding": "a text that should hold JSON, base64, a pickle or YAML, and does not",
        "bad_unicode": "half of a surrogate pair",
        "too_deep": "nested too deeply",
        "bad_tests": "tests in none of the format's encodings, or that contradict themselves",
        "bad_checker": "a checker that cannot be one",
        "tests_not_convertible": "tests, but none that is a call with literal arguments and a literal value",
        "no_statement": "nothing is asked",
        "other_task": "no programming task",
        "adapter_fault": "the adapter failed on it: a fault of ours, please report it",
    }
)
"""Every reason for which this stage turns a row away."""

_ALL = (
    Format("apps", "codeparrot/apps", apps.read_apps, "MIT"),
    Format(
        "apps_folder",
        "APPS as first published, a folder a problem",
        apps.read_apps_folder,
        "MIT",
        Folders(
            ("question.txt",),
            ("question.txt", "input_output.json", "solutions.json", "metadata.json", "starter_code.py"),
        ),
    ),
    Format("taco", "BAAI/TACO, likaixin/TACO-verified", apps.read_apps, "Apache-2.0"),
    Format("codecontests", "deepmind/code_contests", codecontests.read_code_contests, "CC-BY-4.0"),
    Format("codecontests_plus", "ByteDance-Seed/Code-Contests-Plus", codecontests.read_code_contests_plus, "CC-BY-4.0"),
    Format("livecodebench", "livecodebench/code_generation_lite", livecodebench.read_livecodebench, is_benchmark=True),
    Format("deepcoder", "agentica-org/DeepCoder-Preview-Dataset", deepcoder.read_deepcoder, "MIT"),
    Format("eurus", "PRIME-RL/Eurus-2-RL-Data", verl.read_verl, "MIT"),
    Format("synthetic", "PrimeIntellect/verifiable-coding-problems, SYNTHETIC-2-RL", synthetic.read_synthetic),
    Format("openr1_verifiable", "open-r1/verifiable-coding-problems-python", synthetic.read_synthetic),
    Format("openr1_codeforces", "open-r1/codeforces", codeforces.read_codeforces, "CC-BY-4.0"),
    Format("kodcode", "KodCode/KodCode-V1", kodcode.read_kodcode, "CC-BY-NC-4.0"),
    Format("rstar", "microsoft/rStar-Coder", rstar.read_rstar, "CC-BY-4.0"),
    Format("hardtests", "sigcp/hardtests_problems joined with hardtests_tests", hardtests.read_hardtests),
    Format("leetcodedataset", "newfacade/LeetCodeDataset", leetcode.read_leetcodedataset),
    Format("deepseek_leetcode", "deepseek-ai/DeepSeek-Coder", leetcode.read_deepseek_leetcode),
    Format(
        "doocs",
        "doocs/leetcode",
        doocs.read_doocs,
        "CC-BY-SA-4.0",
        Folders(("README_EN.md", "README.md"), ("README.md", "README_EN.md", "Solution.*")),
    ),
    Format("humaneval", "openai/human-eval, EvalPlus, HumanEval-XL", humaneval.read_humaneval, is_benchmark=True),
    Format("mbpp", "google-research/mbpp, EvalPlus", mbpp.read_mbpp, "CC-BY-4.0", is_benchmark=True),
    Format("odex", "zorazrw/odex", odex.read_odex, "CC-BY-SA-4.0", is_benchmark=True),
    Format("verl", "verl's RL parquet, Skywork-OR1", verl.read_verl),
    Format("trl", "JSON lines for TRL's GRPO trainer", verl.read_trl),
    Format(
        "kattis",
        "Kattis problem packages",
        kattis.read_kattis,
        folders=Folders(("problem.yaml",), kattis.TAKES),
    ),
)

FORMATS: Mapping[str, Format] = MappingProxyType({format.name: format for format in _ALL})

__all__ = ["FORMATS", "REASONS", "Folders", "Format", "Malformed", "Row"]
