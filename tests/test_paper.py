"""What is cited of the paper is in the paper,
and docs/paper.md lists the defaults that the code has.
"""

import re
from typing import Any

import pytest

from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from tests.doc_pages import DOCS, ROOT

# Sections, equations, figures and tables of arXiv 2603.07777, version 1.
SECTIONS = {
    "1",
    "1.1",
    "1.2",
    "1.3",
    "2",
    "2.1",
    "2.2",
    "2.3",
    "2.4",
    "2.5",
    "3",
    "4",
    "5",
    "6",
    "7",
    "7.1",
    "7.2",
    "8",
}
NUM_EQUATIONS = 2
NUM_FIGURES = 9
NUM_TABLES = 1
PLACES = ("src", "recipes", "docs", "studies", "examples", "README.md", "ARCHITECTURE.md")
# Citations of other papers stand beside their own arXiv number or name.
OTHERS = re.compile(
    r"arXiv 25\d\d|arXiv 24\d\d|DAPO, eq|DAPO, equation|2503\.|arXiv 2601|arXiv 26(?!03\.07777)"
)
CITED = re.compile(
    r"\b(?P<kind>[Ss]ections?|[Ee]quations?|[Ee]q\.|[Ff]igures?|Table) (?P<numbers>\d+(?:\.\d+)?"
    r"(?:(?:, | and )\d+(?:\.\d+)?)*)"
)


def cited_lines() -> list[tuple[str, str, str]]:
    """Return place, kind and number of every citation of the paper in sources,
    recipes and pages.
    """
    found: list[tuple[str, str, str]] = []
    for place in PLACES:
        root = ROOT / place
        paths = [root] if root.is_file() else sorted(root.rglob("*"))
        for path in paths:
            if path.suffix not in (".py", ".md", ".toml"):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if OTHERS.search(line):
                    continue
                where = f"{path.relative_to(ROOT)}:{number}"
                for match in CITED.finditer(line):
                    kind = match["kind"].lower().rstrip("s.")
                    for cited in re.split(r", | and ", match["numbers"]):
                        found.append((where, kind, cited))
    return found


def test_every_cited_section_equation_figure_and_table_exists() -> None:
    counts = {
        "equation": NUM_EQUATIONS,
        "eq": NUM_EQUATIONS,
        "figure": NUM_FIGURES,
        "table": NUM_TABLES,
    }
    wrong = []
    for where, kind, cited in cited_lines():
        if kind == "section":
            exists = cited in SECTIONS
        else:
            exists = cited.isdigit() and 1 <= int(cited) <= counts[kind]
        if not exists:
            wrong.append(f"{where}: {kind} {cited}")
    assert wrong == []


def test_citations_are_found_at_all() -> None:
    assert len(cited_lines()) > 20


def defaults() -> dict[str, Any]:
    """Return the default of every key that the page names, by the last two parts of its name."""
    config = load_config(
        TrainConfig, overrides={"model.kind": "micro", "problems.kind": "micro"}
    ).model_dump()
    return {
        "rollout.max_response_tokens": config["rollout"]["max_response_tokens"],
        "rollout.temperature": config["rollout"]["temperature"]["value"],
        "batch.train_batch_size": config["batch"]["train_batch_size"],
        "rollout.num_samples": config["rollout"]["num_samples"],
        "optimizer.learning_rate": config["optimizer"]["learning_rate"],
        "algorithm.kl_coefficient": config["algorithm"]["kl_coefficient"],
        "masking.repeat_window_tokens": config["algorithm"]["masking"]["repeat_window_tokens"],
        "evaluation.samples_per_problem": config["evaluation"]["samples_per_problem"],
        "masking.rho": config["algorithm"]["masking"]["rho"],
        "batch.ppo_mini_batch_size": config["batch"]["ppo_mini_batch_size"],
        "num_steps": config["num_steps"],
        "evaluation.temperature": config["evaluation"]["temperature"],
        "loss.clip_low": config["algorithm"]["loss"]["clip_low"],
    }


PAGE = (DOCS / "paper.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("key", "value"), defaults().items())
def test_the_page_of_choices_names_the_default_that_the_code_has(key: str, value: object) -> None:
    (row,) = [line for line in PAGE.splitlines() if f"`{key}`" in line or f"(`{key}" in line]
    numbers = [float(word) for word in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", row)]
    assert value in numbers, row
