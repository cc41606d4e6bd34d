"""Figures are read from what commands print, and told by the pages;
a command that fails moves none.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.doc_pages import ROOT

TABLE = r"""
head = "# Figures"
sections = [{title = "s", head = "## Section"}]
first_page = [{of = ["quick"], what = "w", command = "c", figure = "{x} right"}]
[[figures]]
name = "quick"
section = "s"
what = "w"
command = "c"
reads = {lines = "x.jsonl"}
run = '''RUN > $FOLDER/x.jsonl
echo '{"x": 8, "bad": null}' '''
figure = "{x} right, {lines.-1.tiny.microcoder.as_known}"
beside = "{x}"
[[figures]]
name = "failing"
section = "s"
what = "w"
command = "c"
run = '''echo '{"x": 1}'; exit 3'''
figure = "{x}"
[[figures]]
name = "silent"
section = "s"
what = "w"
command = "c"
run = '''echo '{"x": null}' '''
figure = "{x}"
[[figures]]
name = "absent"
section = "s"
what = "w"
command = "c"
run = "true"
needs = ["no_such.tar.xz"]
figure = "{x}"
"""
RUN = f"python {ROOT}/benchmarks/evaluator.py --only tiny --quick --no-peers --rounds 1"


def test_a_command_moves_its_figure_or_leaves_it_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "benchmarks" / "figures.json"
    readme = tmp_path / "README.md"
    for folder in (store.parent, tmp_path / "docs"):
        folder.mkdir()
    script = shutil.copy(ROOT / "benchmarks" / "figures.py", store.parent)
    shutil.copy(ROOT / "docs" / "judges-results.md", tmp_path / "docs")
    store.with_suffix(".toml").write_text(TABLE.replace("RUN", RUN))
    readme.write_text("Before\n<!-- figures: -->\nold\n<!-- end of figures -->\nafter\n")
    has_avx512 = "avx512f" in Path("/proc/cpuinfo").read_text()
    old = {"date": "2026-11-01", "avx512": not has_avx512, "numbers": {"x": 7}}
    store.write_text(json.dumps({name: [old] for name in ("quick", "failing", "silent", "absent")}))
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True)
    left = []
    for line in ended.stderr.splitlines():
        if ": left as it was: " in line:
            left.append(line)
    assert ended.returncode == 1
    assert [line.partition(":")[0] for line in left] == ["failing", "silent", "absent"]
    assert left[0].endswith("it ended with status 3")
    kept = json.loads(store.read_text())
    assert [kept[name] for name in ("failing", "silent", "absent")] == [[old]] * 3
    assert kept["quick"][1:] == [old]
    assert kept["quick"][0]["numbers"] == {"x": 8, "lines.-1.tiny.microcoder.as_known": 8}
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "- 8 right, 8\n- on a processor with" in page
    assert "(2026-11-01) 7\n- *2" in page
    assert "| 8 right | 2" in readme.read_text()
    assert subprocess.run([sys.executable, script, "absent"], capture_output=True).returncode == 1
