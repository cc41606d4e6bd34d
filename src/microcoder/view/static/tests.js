"use strict";
// A rollout's tests: verdict, cost and the comparison that decided; opened, input, expected and actual output.

viewer.tests = (() => {
  const { make, replace, shown, words, count, figure } = viewer.page;
  const TESTS_AT_FIRST = 60;
  const DIFF_LINES = 2000;

  function render(source, run, rollout) {
    const { tests, tests_total: total } = rollout;
    const isGiven = rollout.split === "corpus";
    const summary = isGiven ? `Tests: ${count(tests.length)}` : `Tests: ${rollout.tests_passed ?? 0} passed, ${tests.length} run of ${total ?? "unknown"}`;
    const list = make("div", { class: "tests" });
    const failed = tests.findIndex((test) => !["accepted", "given"].includes(test.verdict));
    const add = (from, to) => tests.slice(from, to).forEach((test, i) => list.append(row(source, run, rollout, test, from + i, from + i === failed)));
    const whole = Math.max(TESTS_AT_FIRST, failed + 1);
    add(0, whole);
    if (tests.length > whole) {
      const more = make("button", { type: "button", click: () => (more.remove(), add(whole, tests.length)) }, `Show ${count(tests.length - whole)} more tests`);
      list.append(more);
    }
    const left = isGiven ? 0 : (total ?? 0) - tests.length;
    const note = left > 0 && tests.length ? `${count(left)} further ${left === 1 ? "test was" : "tests were"} not run: judging stopped early.` : !tests.length ? `No test ${isGiven ? "is kept" : "was run"}.` : "";
    return make("section", { id: "tests" }, make("h3", {}, summary), note ? make("p", { class: "soft" }, note) : null, list);
  }

  function row(source, run, rollout, test, number, isOpen) {
    const decided = test.method ? `compared: ${shown(test.method)}` : "";
    const cost = [test.cpu_seconds === null || test.cpu_seconds === undefined ? "" : `${figure(test.cpu_seconds, "seconds")} CPU`, test.memory_mib ? `${figure(test.memory_mib)} MiB` : ""];
    const body = make("div", { class: "test-body" }, soft("Reading…"));
    let isFilled = false;
    const fill = async () => {
      if (isFilled) return;
      isFilled = true;
      const known = await source.test(run, rollout.problem_id, number).catch((error) => ({ error }));
      replace(body, ...content(source, run, rollout, test, number, known));
    };
    const details = make(
      "details",
      { class: "test", id: `test-${number}`, toggle: () => details.open && fill() },
      make(
        "summary",
        {},
        make("span", { class: "number" }, `${number + 1}`),
        make("span", { class: `verdict v-${viewer.list.kind(test.verdict)}` }, words(test.verdict)),
        make("span", { class: "soft" }, [decided, ...cost].filter(Boolean).join(" · ")),
        test.detail ? make("span", { class: "detail" }, shown(test.detail)) : null,
      ),
      body,
    );
    details.open = isOpen;
    if (isOpen) fill();
    return details;
  }

  function content(source, run, rollout, test, number, known) {
    if (known.error) return [make("p", { class: "notice" }, shown(known.error.message))];
    const lengths = { ...known.cut, actual: rollout.cut[`${number}/actual`] };
    const missing = known.why ? shown(known.why) : "Not in these files; microcoder view RUN --problems FILE shows it.";
    const actual = typeof test.output === "string" ? test.output : null;
    const expected = known.is_known ? known.expected : null;
    const compared = test.verdict === "wrong_answer" && actual !== null && expected !== null;
    const panes = [
      pane("Input", known.is_known ? text(known.input) : soft(missing), lengths.input),
      pane("Expected", expected === null ? soft(missing) : compared ? lined(expected, actual) : text(expected), lengths.expected),
      test.verdict === "given" ? null : pane("Actual", actual === null ? unrecorded(test) : compared ? lined(actual, expected) : text(actual), lengths.actual),
    ];
    const how = test.verdict === "given" ? "" : test.method ? `Accepted by the comparison “${shown(test.method)}”.` : test.verdict === "wrong_answer" ? "No comparison accepted this output." : `Ended by ${words(test.verdict)}; no output was compared.`;
    return [
      make("p", { class: "soft small" }, `${how}${known.is_known ? ` The problem's checker: ${shown(known.checker)}; read from ${shown(known.origin)}.` : ""}`),
      make("div", { class: "panes" }, panes.filter(Boolean)),
    ].filter(Boolean);
  }

  function soft(message) {
    return make("p", { class: "soft" }, message);
  }

  function text(value) {
    return value === "" ? soft("empty") : make("pre", { tabindex: 0 }, shown(value));
  }

  function unrecorded(test) {
    if (test.verdict === "accepted") return soft("The output was accepted and not recorded.");
    return make("div", {}, test.detail ? make("pre", { tabindex: 0 }, shown(test.detail)) : null, soft("The run recorded this line, not the whole output."));
  }

  // Lines that differ from the other text's line of the same number stand out.
  function lined(value, other) {
    const cut = (string) => shown(string).replace(/\n$/, "").split("\n");
    const lines = cut(value);
    const others = cut(other);
    if (lines.length > DIFF_LINES) return text(value);
    return make("pre", { tabindex: 0 }, lines.map((line, i) => (line === others[i] ? `${line}\n` : make("mark", {}, `${line || " "}\n`))));
  }

  // A titled text; a cut one says so.
  function pane(title, body, length) {
    return make("section", { class: "pane", "aria-label": title }, make("h4", {}, title), body, length ? cutNote(length) : null);
  }

  function cutNote(length) {
    return make("p", { class: "soft small" }, `Cut; the whole has ${count(length)} characters.`);
  }

  return { render, cutNote };
})();
