import random
import re
from functools import cache

from microcoder import extract_program
from microcoder.data.micro import Demonstration, DemonstrationNoise, generate_demonstrations
from microcoder.data.micro.problems import make_problem
from microcoder.judge import judge


@cache
def demonstrations() -> tuple[Demonstration, ...]:
    return tuple(generate_demonstrations(num=4000, seed=1))


def share_right(chosen: list[Demonstration]) -> float:
    return sum(not {"misread", "slip"} & set(d.flaws) for d in chosen) / len(chosen)


def test_the_same_seed_gives_the_same_demonstrations() -> None:
    assert list(generate_demonstrations(num=50, seed=1)) == list(demonstrations()[:50])
    assert list(generate_demonstrations(num=50, seed=2)) != list(demonstrations()[:50])


def test_answers_are_mixed_better_with_longer_plans_and_worse_in_harder_tiers() -> None:
    everything = demonstrations()
    for flaw in ("misread", "slip", "form", "cut"):
        assert 0.01 < sum(flaw in d.flaws for d in everything) / len(everything) < 0.7, flaw
    assert 0.2 < sum(not d.flaws for d in everything) / len(everything) < 0.6
    shares = [share_right([d for d in everything if d.num_plans == number]) for number in range(4)]
    assert shares == sorted(shares)
    assert shares[3] > shares[0] + 0.3
    easy, medium, hard = (share_right([d for d in everything if d.tier == tier]) for tier in ("easy", "medium", "hard"))
    assert easy > medium > hard


def test_plan_lines_come_before_the_program_and_are_numbered() -> None:
    for demonstration in demonstrations()[:500]:
        if "cut" not in demonstration.flaws:
            plan, _, program = demonstration.response.partition("```python\n")
            numbers = [int(number) for number in re.findall(r"^(\d+)\. ", plan, re.MULTILINE)]
            assert sorted(set(numbers)) == list(range(1, demonstration.num_plans + 1))
            assert program


def test_the_program_of_a_whole_demonstration_is_extracted_and_a_cut_one_has_none_or_that() -> None:
    for demonstration in demonstrations()[:1000]:
        program = extract_program(demonstration.response)
        if "cut" not in demonstration.flaws:
            assert program.code is not None
            assert f"```python\n{program.code}```" in demonstration.response


def test_what_is_called_right_is_accepted_and_what_is_called_wrong_mostly_is_not() -> None:
    chosen = [d for d in demonstrations()[:150] if not {"form", "cut"} & set(d.flaws)]
    problems = [make_problem(d.task, d.statement, str(i), random.Random(i)) for i, d in enumerate(chosen)]
    verdicts = judge([extract_program(d.response) for d in chosen], problems)
    right = [v.is_accepted for v, d in zip(verdicts, chosen, strict=True) if not d.flaws]
    wrong = [v.is_accepted for v, d in zip(verdicts, chosen, strict=True) if d.flaws]
    assert all(right)
    assert sum(wrong) / len(wrong) < 0.15


def test_without_noise_every_demonstration_is_right_and_short() -> None:
    clean = DemonstrationNoise(
        misread_range=(0, 0), slip_range=(0, 0), plan_weights=(1,), form_share=0, ramble_share=0, repeat_share=0,
        cut_share=0,
    )  # fmt: skip
    for demonstration in generate_demonstrations(num=300, noise=clean):
        assert (demonstration.flaws, demonstration.num_plans) == ((), 0)
        assert demonstration.response.startswith("```python\n")
        assert "\n```" in demonstration.response[4:]


def test_some_answers_ramble_or_repeat_past_any_small_limit() -> None:
    lengths = [len(d.response) for d in demonstrations()]
    assert sum(length > 3 * sum(lengths) / len(lengths) for length in lengths) / len(lengths) > 0.01
    repeated = [d for d in demonstrations() if re.search(r"(^\d+\. .+\n)\1{5}", d.response, re.MULTILINE)]
    assert len(repeated) > 20
