"use strict";
// One rollout: what was decided about it, its group, its prompt, reasoning, program and tests.

viewer.sample = (() => {
  const { make, replace, shown, words, count } = viewer.page;
  const KEPT = 60;
  const kept = new Map();

  const MASKED = {
    truncated: "the response reached the length limit, and this run masks every such response",
    truncated_correct: "the response reached the length limit, yet its program passes all tests and it does not repeat itself; it was drawn with the mask's probability",
    truncated_incomplete: "the response reached the length limit before its program was complete, and it does not repeat itself; it was drawn with the mask's probability",
  };

  // Recent rollouts are kept, so that going back and forth is instant; null when it is not there.
  // `state` is what is known of the rollout's verdict: one that was not judged yet is read again when it is.
  async function load(source, run, id, search, state) {
    const key = JSON.stringify([run, id, search, state]);
    if (!kept.has(key)) {
      kept.set(key, source.rollout(run, id, search ?? {}));
      kept.get(key).catch(() => kept.delete(key));
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    }
    return kept.get(key);
  }

  // What a reader may begin with, before a rollout is chosen.
  function invite(place, state, index) {
    const link = (text, changes) => make("li", {}, make("a", { href: viewer.state.link({ ...state, from: "", at: "", ...changes }) }, text));
    const { marked } = viewer.columns.facets(index);
    const mixed = viewer.columns.mixed(index, index.words.split.includes("train") ? "train" : null);
    const offers = [
      mixed.length ? link(`a group whose answers differ, of ${count(mixed.length)}`, { view: "group", at: viewer.columns.record(index, mixed.at(-1).places[0]).id }) : null,
      marked.flipped ? link(`${count(marked.flipped)} of problems that flipped`, { only: "flipped" }) : null,
      marked.masked ? link(`${count(marked.masked)} masked`, { masked: "yes" }) : null,
      marked.disagree ? link(`${count(marked.disagree)} on which reward and judge disagree`, { only: "disagree" }) : null,
      link("the longest", { order: "longest" }),
      marked.slowest ? link("the slowest to judge", { order: "slowest" }) : null,
    ];
    replace(place, make("section", { class: "hint" }, make("p", { class: "soft" }, "Choose a rollout, or press j. Worth a look:"), make("ul", { class: "offers" }, offers)), viewer.notes.list(state.run));
  }

  function render(place, source, state, index, rollout) {
    const run = state.run;
    const at = viewer.columns.find(index, rollout.id);
    const members = viewer.columns.group(index, at).map((other) => viewer.columns.record(index, other));
    replace(
      place,
      head(state, rollout),
      rollout.masked_why ? make("p", { class: "notice", id: "masked" }, make("strong", {}, "Masked: "), `${MASKED[rollout.masked_why] ?? words(rollout.masked_why)}. ${loss(rollout)}`) : null,
      rollout.reward === null && rollout.verdict === "sandbox_fault" ? make("p", { class: "notice" }, "Unscored: the sandbox failed, not the program. It is in no mean and has no advantage.") : null,
      viewer.notes.render(run, rollout.id),
      members.length > 1 ? group(state, rollout, members) : null,
      steps(state, index, at),
      prompt(source, run, rollout),
      ...response(source, run, rollout),
      program(source, run, rollout),
      viewer.tests.render(source, run, rollout),
    );
  }

  function head(state, rollout) {
    const number = (value) => (value === null || value === undefined ? null : viewer.list.signed(value));
    const score = (value) => (value === null || value === undefined ? "none" : `${+value.toFixed(3)}`);
    const isRun = rollout.split === "train" || rollout.split === "heldout";
    const facts = [
      ["samples", viewer.filters.SPLITS[rollout.split]],
      ["step", isRun ? `${rollout.step}` : ""],
      ["sample", `${rollout.sample_index ?? "?"}`],
      ["tier", shown(rollout.tier)],
      ["tokens", rollout.num_tokens === null ? "" : `${count(rollout.num_tokens)}${rollout.is_truncated ? ", truncated" : ""}`],
      ["temperature", rollout.temperature === undefined ? "" : `${+rollout.temperature.toFixed(4)}`],
      ["tests", rollout.tests_total === null ? "" : `${rollout.tests_passed} of ${rollout.tests_total}`],
      ["reward", score(rollout.reward)],
      ["advantage", rollout.split === "train" ? number(rollout.advantage) : null],
      ...Object.entries(rollout.facts ?? {}).map(([name, value]) => [shown(name), shown(value)]),
    ].filter(([, value]) => value);
    return make(
      "header",
      { class: "sample-head" },
      make(
        "div",
        { class: "bar-of-tools" },
        make("a", { class: "back", href: viewer.state.link({ ...state, at: "", from: "" }), id: "back" }, "‹ List"),
        make("span", { class: "soft", id: "standing" }, viewer.list.standing(state)),
        viewer.page.copier("copy", "Copy link", () => location.href),
        make("button", { type: "button", id: "pin", click: () => pin(state) }, state.pin ? "Compare with the pinned" : "Pin to compare"),
      ),
      make("h2", { tabindex: -1, id: "sample-title" }, shown(rollout.problem_id)),
      make("p", {}, make("span", { class: `verdict v-${viewer.list.kind(rollout.verdict)}`, id: "verdict" }, words(rollout.verdict)), badges(rollout)),
      make("dl", { class: "facts wide" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    );
  }

  /* What the mask took. */
  function loss({ lost }) {
    if (!lost) return "Its advantage was set to 0, so it moved no weight.";
    const taken = Object.fromEntries(lost);
    const amount = taken.mask ?? taken.mismatch;
    return amount ? `Its advantage, ${viewer.list.signed(amount)}, was set to 0, so it moved no weight.` : "Its advantage would have been 0 anyway: the mask changed nothing.";
  }

  function badges({ is_truncated: isTruncated, masked_why: maskedWhy }) {
    return [isTruncated ? "truncated" : "", maskedWhy ? "masked" : ""].filter(Boolean).map((text) => make("b", { class: "badge" }, text));
  }

  // The first press remembers a rollout, the second shows another beside it.
  function pin(state) {
    const here = viewer.compare.name(state.run, state.at);
    if (!state.pin) viewer.state.go({ pin: here, run: state.run }, { replace: true });
    else viewer.state.go({ view: "compare", a: state.pin, b: here, pin: "" });
    const button = document.getElementById("pin");
    if (button) button.textContent = "Pinned; open another rollout";
  }

  // The same problem at other steps, with its pass rates.
  function steps(state, index, at) {
    const history = viewer.columns.historyOf(index, at);
    if (history.length < 2) return null;
    const here = index.columns.step[at];
    const links = history.map((entry) => make("li", {}, make("a", { href: viewer.state.link({ ...state, at: viewer.columns.record(index, entry.places[0]).id, from: "" }), "aria-current": entry.step === here ? "true" : null, class: `rate-${entry.scored ? Math.round((10 * entry.solved) / entry.scored) : "none"}` }, `step ${entry.step}: ${entry.solved}/${entry.scored}`)));
    return make("section", {}, make("h3", {}, "This problem over time"), make("ol", { class: "group", "aria-label": "Pass rates of this problem by step" }, links));
  }

  function group(state, rollout, members) {
    const scored = members.filter((row) => row.reward !== null);
    const mean = scored.reduce((sum, row) => sum + row.reward, 0) / (scored.length || 1);
    const chips = members.map((row) =>
      make(
        "li",
        {},
        make(
          "a",
          { href: viewer.state.link({ ...state, at: row.id, from: "" }), "aria-current": row.id === rollout.id ? "true" : null, title: words(row.verdict) },
          make("span", { class: `verdict v-${viewer.list.kind(row.verdict)}` }, words(row.verdict)),
          make("span", { class: "soft" }, ` #${row.sample_index} · reward ${row.reward === null ? "none" : +row.reward.toFixed(2)}${row.advantage === null || row.split !== "train" ? "" : ` · adv ${viewer.list.signed(row.advantage)}`}${row.masked_why ? " · masked" : ""}`),
        ),
      ),
    );
    const summary = `Group of ${members.length}: mean reward ${+mean.toFixed(3)}`;
    const apart = make("a", { href: viewer.state.link({ ...state, view: "group" }), id: "side-by-side" }, "Side by side");
    return make("section", {}, make("div", { class: "bar-of-tools" }, make("h3", {}, summary), apart), make("ol", { class: "group", "aria-label": "Samples of the same problem in this step" }, chips));
  }

  function block(source, run, rollout, title, field, text, { open = true, note = "" } = {}) {
    const body = make("pre", { tabindex: 0, id: `text-${title.toLowerCase()}` }, shown(text));
    const length = rollout.cut[field];
    return make(
      "details",
      { class: "text", open },
      make("summary", {}, title, make("span", { class: "soft" }, ` ${note || `${count(text.length)} characters`}`)),
      make("div", { class: "bar-of-tools" }, viewer.page.copier(`copy-${title.toLowerCase()}`, `Copy ${title.toLowerCase()}`, () => text)),
      length ? viewer.tests.cutNote(length) : null,
      body,
    );
  }

  function prompt(source, run, rollout) {
    if (typeof rollout.prompt !== "string") return null;
    const part = block(source, run, rollout, "Prompt", "prompt", rollout.prompt, { open: rollout.prompt.length < 1500 });
    const plain = part.querySelector("pre");
    const prose = viewer.prose.render(rollout.prompt);
    plain.hidden = true;
    const swap = (event) => {
      [plain.hidden, prose.hidden] = [prose.hidden, plain.hidden];
      event.target.textContent = plain.hidden ? "Show as it was sent" : "Show as it reads";
    };
    part.querySelector(".bar-of-tools").append(make("button", { type: "button", class: "quiet", click: swap }, "Show as it was sent"));
    plain.before(prose);
    return part;
  }

  // Reasoning is what stands before </think> or, without it, before the program's block; the program has its own place.
  function response(source, run, rollout) {
    const parts = written(source, run, rollout);
    if (rollout.is_truncated && parts.length) parts.at(-1).append(make("p", { class: "cut-here" }, "The response was cut off here: it reached the length limit."));
    return parts;
  }

  function written(source, run, rollout) {
    const text = rollout.completion;
    if (typeof text !== "string") return [];
    if (rollout.split === "corpus") return [block(source, run, rollout, "Source", "completion", text, { open: false })];
    if (rollout.cut.completion) return [block(source, run, rollout, "Response", "completion", text)];
    const end = text.lastIndexOf("</think>");
    const code = rollout.program ? text.lastIndexOf(rollout.program.trim()) : -1;
    const fence = code > 0 ? text.lastIndexOf("```", code) : -1;
    const cut = end >= 0 ? end + "</think>".length : fence;
    if (cut < 0) return [block(source, run, rollout, "Response", "completion", text)];
    const rest = text.slice(cut);
    const reasoning = text.slice(0, cut);
    const isLong = reasoning.length > 6000;
    return [
      reasoning.trim() ? block(source, run, rollout, "Reasoning", "completion", reasoning, { open: !isLong }) : null,
      rest.trim() ? block(source, run, rollout, "Answer", "completion", rest, { open: rollout.is_truncated }) : null,
    ].filter(Boolean);
  }

  function program(source, run, rollout) {
    const why = words(rollout.extraction ?? "");
    if (typeof rollout.program !== "string") return make("p", { id: "no-program" }, make("strong", {}, "No program. "), why);
    const part = block(source, run, rollout, "Program", "program", rollout.program, { note: why });
    const lines = shown(rollout.program).replace(/\n$/, "").split("\n");
    const numbers = make("span", { class: "lines", "aria-hidden": "true" }, lines.map((_, i) => `${i + 1}\n`).join(""));
    const code = part.querySelector("pre");
    replace(code, viewer.code.paint(rollout.program));
    const frame = make("div", { class: "program" });
    code.replaceWith(frame);
    frame.append(numbers, code);
    return part;
  }

  return { load, invite, render };
})();
