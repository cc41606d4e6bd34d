import random
from collections import Counter

import pytest

from microcoder import DataError, Program
from microcoder.data.micro import STYLES, TEMPLATES, TIERS, generate_demonstrations, generate_problems
from microcoder.data.micro.operations import Split, draw_task
from microcoder.data.micro.problems import draw_tasks, make_problem
from microcoder.data.micro.programs import write_statement
from microcoder.judge import judge


def test_there_are_forty_templates_in_three_tiers() -> None:
    assert len({template.name for template in TEMPLATES}) == len(TEMPLATES) >= 40
    per_tier = Counter(template.tier for template in TEMPLATES)
    assert set(per_tier) == set(TIERS)
    assert min(per_tier.values()) >= 10


def test_every_template_has_references_that_pass_their_own_tests() -> None:
    problems = []
    for number, (template, style) in enumerate((t, s) for t in TEMPLATES for s in STYLES):
        for draw in range(1 if template.algorithm else 2):
            generator = random.Random(100 * number + draw)
            task = draw_task(template, style, generator)
            statement = write_statement(task, generator)
            problems.append(make_problem(task, statement, f"{template.name} {style} {draw}", generator))
    verdicts = judge([Program(problem.reference) for problem in problems], problems)
    failed = {p.id: v.detail for p, v in zip(problems, verdicts, strict=True) if not v.is_accepted}
    assert failed == {}


def test_the_same_seed_gives_the_same_problems_and_a_longer_list_starts_with_the_shorter_one() -> None:
    first, other = (generate_problems(split="train", num_problems=60, seed=seed) for seed in (3, 4))
    assert first[:25] == generate_problems(split="train", num_problems=25, seed=3)
    assert {p.statement for p in first} != {p.statement for p in other}


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_problems_are_distinct_graded_and_limited(split: Split) -> None:
    problems = generate_problems(split=split, num_problems=90)
    assert len({p.statement for p in problems}) == len({p.id for p in problems}) == 90
    assert Counter(p.tier for p in problems) == dict.fromkeys(TIERS, 30)
    assert problems[1].id == f"micro-{split}-medium-000001"
    assert {p.fn_name for p in problems} == {None, "solve"}
    for problem in problems:
        assert problem.reference
        assert len(problem.tests) == 6
        assert (problem.time_limit_seconds, problem.memory_limit_mib) == (1.0, 256)
        assert (problem.starter_code is None) == (problem.fn_name is None)


def test_no_heldout_statement_is_ever_in_training_or_in_a_demonstration() -> None:
    heldout = {p.statement for seed in (0, 1) for p in generate_problems(split="heldout", num_problems=150, seed=seed)}
    trained = {p.statement for seed in (0, 1) for p in generate_problems(split="train", num_problems=450, seed=seed)}
    shown = {demonstration.statement for demonstration in generate_demonstrations(num=2000)}
    assert not heldout & (trained | shown)


def test_heldout_chains_of_operations_are_unseen_whatever_their_wording_and_style() -> None:
    chains = {
        split: {
            task.composition
            for _, (task, _) in zip(
                range(1500), draw_tasks(random.Random(5), tiers=TIERS, styles=STYLES, split=split), strict=False
            )
            if len(task.steps) > 1
        }
        for split in ("train", "heldout")
    }
    assert len(chains["heldout"]) > 200
    assert not chains["train"] & chains["heldout"]


def test_tiers_and_styles_can_be_chosen_and_weighted() -> None:
    problems = generate_problems(split="train", num_problems=30, tiers=("easy", "hard", "hard"), styles=("function",))
    assert Counter(p.tier for p in problems) == {"easy": 10, "hard": 20}
    assert {p.fn_name for p in problems} == {"solve"}


def test_no_problem_has_one_answer_to_everything() -> None:
    for problem in generate_problems(split="heldout", num_problems=200):
        assert len({test.output for test in problem.tests}) > 1, problem.id


def test_unknown_words_and_impossible_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="unknown tier 'harder'; allowed: easy, medium, hard"):
        generate_problems(split="train", num_problems=1, tiers=("harder",))  # pyrefly: ignore
    with pytest.raises(DataError, match="no style given; allowed"):
        generate_problems(split="train", num_problems=1, styles=())
    monkeypatch.setattr("microcoder.data.micro.problems.ATTEMPTS", 20)
    with pytest.raises(DataError, match=r"ask for \d+ or fewer"):
        generate_problems(split="heldout", num_problems=100_000, tiers=("easy",), styles=("stdin",))
