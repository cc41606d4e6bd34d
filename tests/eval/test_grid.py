"""The grid: every sum is over the right problems, and pass@k is what drawing k samples would give."""

from microcoder.eval.report import accuracy_grid, solved_from

QUESTIONS = [
    {"problem_id": f"{platform}-{difficulty}-{index}", "platform": platform, "difficulty": difficulty}
    for platform in ("leetcode", "atcoder")
    for difficulty in ("hard", "easy")
    for index in range(2)
]


def test_cells_sum_over_their_platform_and_difficulty() -> None:
    solved = {
        question["problem_id"]: [question["platform"] == "atcoder", question["difficulty"] == "easy"]
        for question in QUESTIONS
    }
    cells = accuracy_grid(QUESTIONS, solved, ks=[1, 2])
    assert [(c["platform"], c["difficulty"]) for c in cells if c["k"] == 1] == [
        (platform, difficulty) for platform in ("atcoder", "leetcode", "all") for difficulty in ("easy", "hard", "all")
    ]
    values = {(c["platform"], c["difficulty"]): c["value"] for c in cells if c["k"] == 1}
    assert values["atcoder", "easy"] == 1.0
    assert values["atcoder", "all"] == 0.75
    assert values["all", "hard"] == 0.25
    assert values["all", "all"] == 0.5
    whole = next(c for c in cells if (c["platform"], c["difficulty"], c["k"]) == ("all", "all", 1))
    assert whole["low"] < 0.5 < whole["high"]
    assert whole["num_problems"] == 8


def test_a_fault_is_unscored_and_a_benchmark_without_platforms_is_one_row() -> None:
    rows = {("p", 0): {"verdict": "accepted"}, ("p", 1): {"verdict": "sandbox_fault"}, ("q", 0): {"verdict": "no_code"}}
    solved = solved_from(rows)
    assert solved == {"p": [True, None], "q": [False]}
    questions = [{"problem_id": name, "platform": "", "difficulty": ""} for name in solved]
    assert [(c["platform"], c["difficulty"]) for c in accuracy_grid(questions, solved, ks=[1])] == [("all", "all")]
