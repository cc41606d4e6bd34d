import json
from pathlib import Path

import pytest
from synthetic_run import Recipe, write_run

from microcoder.cli import main
from microcoder.eval.report import EvaluationFolder, Sample
from microcoder.judge.core.files import append_row, write_json


def test_the_verb_writes_the_page_and_prints_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "demo", Recipe(num_steps=2, evaluate_every=1, num_heldout=6))
    main(["report", str(run)])
    assert capsys.readouterr().out == f"{run / 'report/index.html'}\n"
    main(["report", str(run), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert Path(told["report"]).is_file()
    assert (told["name"], told["is_finished"], told["num_steps"], told["num_problems"]) == ("demo", True, 2, 6)
    assert told["difference"] == pytest.approx(told["accuracy_after"] - told["accuracy_before"])
    assert told["difference_low"] <= told["difference"] <= told["difference_high"]
    assert told["num_unscored"] == 0


def test_a_run_without_numbers_has_nulls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    main(["report", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["accuracy_before"], told["difference"], told["is_finished"]) == (None, None, False)


def test_a_folder_that_is_no_run_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["report", str(tmp_path)])
    assert exit_info.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "pass a folder that `microcoder train` wrote" in captured.err


def test_an_evaluation_is_shown_as_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = EvaluationFolder(tmp_path)
    config = {"benchmark": {"kind": "problems"}, "generation": {"kind": "file", "path": "answers.jsonl"}}
    write_json(folder.manifest, {"kind": "evaluation", "digest": "aa", "config": config})
    for name, verdict in (("one", "accepted"), ("two", "wrong_answer")):
        append_row(folder.questions, {"problem_id": name, "platform": "kattis", "difficulty": "easy"})
        append_row(folder.samples, Sample(name, 0, None, "print(1)", "whole answer").as_record())
        append_row(folder.verdicts, {"problem_id": name, "sample_index": 0, "verdict": verdict})
    main(["report", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "2 problems x 1 samples" in printed
    assert "50.0" in printed
    main(["report", str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"accepted": 1, "wrong_answer": 1}
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path), "--pass-at", "0"])
    assert "--pass-at 0: use 1 or more" in capsys.readouterr().err
