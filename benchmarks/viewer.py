"""How fast the viewer is on 100,000 rollouts, measured in a headless Chromium.

    python benchmarks/viewer.py [--folder FOLDER] [--bundle]

Writes a run of 196 steps x 64 problems x 8 samples (prompts of 1 kB, responses of 4 kB on average), serves it as
`microcoder view` does, and times in the page: from the start of the navigation to the frame that shows content, from a
changed filter or search to the frame that shows its list, and from a new step in the run's folder to the page that
tells of it. The folder is kept and used again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "view" / "parts"))

from browsers import CHROMIUM, Chromium  # pyrefly: ignore[missing-import]

from microcoder.judge.core.files import append_row, write_json
from microcoder.train.metrics import StepMetrics
from microcoder.train.runs import RunDirectory, write_rollouts
from microcoder.view import ViewerServer, open_collection, write_bundle
from microcoder.view.index import Needle

NUM_STEPS, NUM_PROBLEMS, NUM_SAMPLES = 196, 64, 8
NUM_DISTINCT = 14
NUM_OPENINGS = 7
NUM_SEARCHES = 4
VERDICTS = ("accepted", "wrong_answer", "runtime_error", "time_limit", "no_code")
WORDS = [f"{random.Random(n).randrange(36**4):x}" for n in range(3000)]

FIRST_FRAME = """
new MutationObserver((_, observer) => {
  if (!document.querySelector('.plot, .rows a')) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => (window.painted = performance.now())));
}).observe(document, {childList: true, subtree: true});
"""
SET = """
new Promise((resolve) => {{
  const field = document.getElementById({field}), began = performance.now(), old = document.getElementById('found');
  new MutationObserver((_, observer) => {{
    if (document.getElementById('found') === old) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
  }}).observe(document.body, {{childList: true, subtree: true, characterData: true}});
  field.value = {value};
  field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', {{bubbles: true}}));
}})
"""
FILTERS = [
    ("verdict", "wrong_answer"),
    ("verdict", "!accepted"),
    ("truncated", "yes"),
    ("masked", "yes"),
    ("problem", "p-0001"),
    ("only", "slowest"),
    ("step", "100-150"),
    ("order", "first"),
    ("order", "longest"),
    ("order", "advantage"),
]


def write_run(root: Path) -> None:
    """Problems come again every `NUM_DISTINCT` steps, with the rollouts they had: what is read is as much as ever."""
    drawn, run = random.Random(0), RunDirectory(root)
    for step in range(1, NUM_STEPS + 1):
        if step <= NUM_DISTINCT:
            write_step(run, drawn, step)
        else:
            shutil.copyfile(run.rollout_file((step - 1) % NUM_DISTINCT + 1), run.rollout_file(step))
    append_metrics(run, range(1, NUM_STEPS + 1))
    write_json(run.manifest, {"name": "large", "config": {}})


def write_step(run: RunDirectory, drawn: random.Random, step: int) -> None:
    rows = [rollout(drawn, step, n // NUM_SAMPLES, n % NUM_SAMPLES) for n in range(NUM_PROBLEMS * NUM_SAMPLES)]
    write_rollouts(run.rollout_file(step), rows)


def append_metrics(run: RunDirectory, steps: Iterable[int]) -> None:
    for step in steps:
        append_row(run.metrics, step_metrics(step).as_row())


def rollout(drawn: random.Random, step: int, problem: int, index: int) -> dict[str, Any]:
    verdict = drawn.choices(VERDICTS, (40, 40, 8, 4, 8))[0]
    is_truncated = drawn.random() < 0.1
    text = " ".join(drawn.choices(WORDS, k=drawn.randrange(200, 1400)))
    code = "".join(f"print({drawn.random()})\n" for _ in range(20))
    test = {"verdict": verdict, "cpu_seconds": 0.01, "wall_seconds": 0.02, "memory_mib": 9.0, "method": "exact"}
    return {
        "step": step,
        "problem_id": f"p-{step * NUM_PROBLEMS + problem:06d}",
        "tier": ("easy", "medium", "hard")[problem % 3],
        "sample_index": index,
        "prompt": " ".join(WORDS[problem * 20 : problem * 20 + 200]),
        "completion": f"{text}\n```python\n{code}```",
        "num_tokens": len(text) // 4,
        "is_truncated": is_truncated,
        "temperature": 1.0,
        "program": code,
        "extraction": "last_closed_code_block",
        "verdict": verdict,
        "tests_passed": 5,
        "tests_total": 10,
        "tests": [{**test, "detail": "", "output": None}] * 6,
        "reward": float(verdict == "accepted"),
        "length_penalty": 0.0,
        "advantage": drawn.gauss(0, 1),
        "masked_why": "truncated_incomplete" if is_truncated and drawn.random() < 0.2 else "",
    }


def step_metrics(step: int) -> StepMetrics:
    share = step / NUM_STEPS
    return StepMetrics(
        step=step, reward_mean=share, accuracy_by_tier={"easy": share, "medium": share / 2, "hard": share / 4},
        length_mean=900, length_max=4000, max_response_tokens=4096, truncated_share=0.1, diversity=0.6, temperature=1.0,
        masked_share=0.02, no_code_share=0.05, unscored_share=0.0, zero_variance_share=0.3, outcomes={}, methods={},
        masked={}, optimizer={"loss": 0.1, "grad_norm": 0.3}, seconds={"generate": 30.0, "judge": 4.0, "update": 20.0},
    )  # fmt: skip


# What was found is remembered, so each is asked once, and has others of its kind.
SEARCHES: dict[str, tuple[str, list[str]]] = {
    "two words": ("", [f"{WORDS[n]} {WORDS[n + 1]}" for n in range(NUM_SEARCHES)]),
    "a common word": ("", WORDS[10 : 10 + NUM_SEARCHES]),
    "nowhere": ("", ["thereisnosuchword" + "x" * n for n in range(NUM_SEARCHES)]),
    "expression": ("yes", [rf"print\(0\.{n}2\d+" for n in range(NUM_SEARCHES)]),
    "expression, nowhere": ("yes", [rf"def \w+\(self\):\s{{{n}}}return" for n in range(NUM_SEARCHES)]),
    "expression, case kept": ("yes", [rf"[A-Z]{{4}}\d{n}" for n in range(NUM_SEARCHES)]),
}


def measure_searches(browser: Chromium) -> None:
    for name, (regex, texts) in SEARCHES.items():
        browser.run(f"viewer.state.go({{text: '', regex: {json.dumps(regex)}, order: 'first'}}, {{replace: true}})")
        browser.wait("document.getElementById('found')")
        field = json.dumps("filter-text")
        began = time.process_time()
        told(f"search, {name}", [browser.run(SET.format(field=field, value=json.dumps(text))) for text in texts])
        print(f"{'':34} {1000 * (time.process_time() - began) / len(texts):6.0f} ms of CPU time each in the server")


def measure_following(browser: Chromium, root: Path) -> None:
    run, waits = RunDirectory(root), []
    for number in range(3):
        step = NUM_STEPS + 1 + number
        write_step(run, random.Random(step), step)
        append_metrics(run, [step])
        began = time.perf_counter()
        browser.wait(f"document.querySelector('fieldset').textContent.includes('{step} steps')")
        waits.append(1000 * (time.perf_counter() - began))
        time.sleep(0.7)
    run.rewind(NUM_STEPS)
    told("a new step is shown after", waits)


def measure(browser: Chromium, base: str) -> None:
    for name, part in (("curves", "#view=curves"), ("list", "#view=rollouts&run=large")):
        first = [open_page(browser, base + part) for _ in range(NUM_OPENINGS)]
        told(f"first paint, {name}", first)
    browser.wait("document.getElementById('found')")
    for field, value in FILTERS:
        told(f"filter {field}={value}", [set_filter(browser, field, value) for _ in range(NUM_OPENINGS)])
    samples = []
    browser.open(base + "#view=rollouts&run=large&verdict=wrong_answer")
    browser.wait("document.querySelector('.rows a')")
    for place in range(3, 3 + NUM_OPENINGS):
        started = f"(window.began = performance.now(), document.querySelectorAll('.rows a')[{place * 3}].click())"
        title = browser.text("#standing")
        browser.run(started)
        browser.wait(f"(document.getElementById('standing')?.textContent ?? '') !== {json.dumps(title)}")
        samples.append(browser.run("performance.now() - window.began"))
    told("open a sample (to 20 ms)", samples)


def open_page(browser: Chromium, url: str) -> float:
    browser.open(url)
    browser.wait("window.painted")
    return browser.run("window.painted")


def set_filter(browser: Chromium, field: str, value: str) -> float:
    seconds = browser.run(SET.format(field=json.dumps(f"filter-{field}"), value=json.dumps(value)))
    browser.run(SET.format(field=json.dumps(f"filter-{field}"), value='""'))
    return seconds


def told(what: str, milliseconds: list[float]) -> None:
    print(f"{what:34} median {median(milliseconds):6.0f} ms   worst {max(milliseconds):6.0f} ms", flush=True)


def timed(what: str, work: Callable[[], object]) -> None:
    started = time.perf_counter()
    work()
    print(f"{what:34} {time.perf_counter() - started:6.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "microcoder-viewer-benchmark")
    parser.add_argument("--bundle", action="store_true", help="measure a bundle opened from disk, too")
    options = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("no Chromium is installed here")
    root = options.folder / "large"
    if not (root / "manifest.json").exists():
        timed("write the run", lambda: write_run(root))
    num_bytes = sum(path.stat().st_size for path in root.rglob("*.parquet"))
    collection = open_collection([root])
    timed("read the light columns, once", lambda: print(f"{len(collection['large'].index()):,} rollouts", end=" "))
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{num_bytes / 1e6:,.0f} MB of Parquet; {held:,.0f} MiB held at most")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Chromium(Path(profile)) as browser:
        browser.look(width=1280)
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=FIRST_FRAME)
        with ViewerServer(collection, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            measure(browser, server.url)
            parts = collection["large"].parts(collection["large"].index())
            timed("read the texts, once", lambda: collection.searcher.find(parts, Needle("nowhere")))
            held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{held:,.0f} MiB held at most")
            browser.open(f"{server.url}#view=rollouts&run=large&order=first")
            browser.wait("document.querySelector('.rows a')")
            measure_searches(browser)
            browser.open(f"{server.url}#view=curves")
            browser.wait("document.querySelector('.plot')")
            time.sleep(5)
            measure_following(browser, root)
            server.shutdown()
        if options.bundle:
            folder = options.folder / "bundle"
            timed("write the bundle", lambda: write_bundle(collection, folder))
            measure(browser, (folder / "index.html").as_uri())


if __name__ == "__main__":
    main()
