"""Errors put into a judge's verdicts: as many as asked for, on whom asked for,
and the same again.
"""

from hypothesis import given
from hypothesis import strategies as st
from noisy_judge import noisy_verdict, place_program

from microcoder import Outcome, Problem, Program, Rollout, TestCase, TestResult, Verdict
from microcoder.judge.core.rewards import load_rewards

NOISE = "noisy_judge:noisy_verdict"
PROBLEM = Problem(id="p", statement="s", tests=(TestCase(input="", output="1"),))
OTHER = PROBLEM.model_copy(update={"id": "q"})
ROLLOUT = Rollout("p", "s", "text", (1, 2), False)
WRONG = Verdict(Outcome.WRONG_ANSWER, (), 1)
RIGHT = Verdict(Outcome.ACCEPTED, (TestResult(Outcome.ACCEPTED, 0.1, 0.1, 10.0, "", ""),), 1)
RATES = st.floats(0, 1)


@given(accepts=RATES, rejects=RATES, draw=st.floats(0, 1, exclude_max=True), is_right=st.booleans())
def test_a_random_error_depends_on_the_draw_and_the_rate_of_its_own_kind(
    accepts: float,
    rejects: float,
    draw: float,
    is_right: bool,
) -> None:
    verdict = RIGHT if is_right else WRONG
    paid = noisy_verdict(
        PROBLEM,
        ROLLOUT,
        Program("x"),
        verdict,
        draw,
        false_accepts=accepts,
        false_rejects=rejects,
    )
    assert paid == float(is_right != (draw < (rejects if is_right else accepts)))


@given(
    accepts=RATES,
    rejects=RATES,
    draws=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 2),
    digit=st.integers(0, 9),
)
def test_a_systematic_error_depends_on_the_program_alone(
    accepts: float,
    rejects: float,
    draws: tuple[float, float],
    digit: int,
) -> None:
    first, other = (
        [
            noisy_verdict(
                problem,
                ROLLOUT,
                Program(code),
                verdict,
                draw,
                false_accepts=accepts,
                false_rejects=rejects,
                kind="systematic",
                pattern=3,
            )
            for verdict in (WRONG, RIGHT)
        ]
        for problem, code, draw in (
            (PROBLEM, f"def solve(x):\n    return x + {digit}\n", draws[0]),
            (OTHER, f"def solve(x):   # again\n\n    return (x+{digit})", draws[1]),
        )
    )
    assert first == other
    place = place_program(f"def solve(x):\n    return x + {digit}\n", 3)
    assert first == [float(place < accepts), float(place >= rejects)]


def test_errors_may_fall_on_all_programs_with_the_same_constants() -> None:
    seven = place_program("return x * 7", 0, trait="constants")
    also_seven = place_program("print(max(int(input()), 7))  # 8\n", 0, trait="constants")
    eight = place_program("return x * 8", 0, trait="constants")
    broken = place_program("return return", 0, trait="constants")
    assert seven == also_seven != eight
    assert broken != place_program("x", 0, trait="constants")
    options = {"false_accepts": 1.0, "kind": "systematic", "trait": "constants"}
    rewards = load_rewards([(NOISE, 1.0, options)])
    assert rewards(PROBLEM, ROLLOUT, Program("x = 7"), WRONG, draw=0.0).total == 1.0


def test_text_that_is_no_python_and_responses_without_a_program_have_their_place() -> None:
    assert 0 <= place_program("def solve(x:\n", 0) < 1
    assert 0 <= place_program("\ud800", 0) < 1
    assert place_program("x = 1", 0) != place_program("x = 1", 1)
    no_program = noisy_verdict(PROBLEM, ROLLOUT, Program(None), WRONG, 0.0, false_accepts=1.0)
    assert no_program == 0.0
