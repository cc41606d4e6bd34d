"use strict";
// Two rollouts side by side: two samples, two steps of a problem, or two runs; and what two runs' configs differ in.

viewer.compare = (() => {
  const { make, replace, shown, words, choice, table } = viewer.page;

  const place = (text) => {
    const [run, ...id] = (text ?? "").split("|");
    return { run, id: id.join("|") };
  };
  const name = (run, id) => `${run}|${id}`;

  async function render(main, { source, runs, state, isWanted }) {
    const a = place(state.a);
    const b = place(state.b);
    const heading = make("h2", { class: "unseen" }, "Compare");
    if (!a.run) {
      const [first, second] = runs;
      replace(main, heading, make("p", { class: "soft hint" }, "Open a rollout and press “Pin”, then open another: the two can be compared here."), second ? await configs(runs, first.key, second.key) : null);
      return;
    }
    const sides = await Promise.all([side(source, runs, state, "a", a), side(source, runs, state, "b", b.run ? b : a)]);
    if (!isWanted()) return;
    const [left, right] = sides;
    replace(
      main,
      heading,
      make("div", { class: "pair" }, sides.map(({ element }) => element)),
      left.rollout && right.rollout ? differences(left.rollout, right.rollout) : null,
      left.run !== right.run ? await configs(runs, left.run, right.run) : null,
    );
  }

  // One side: which run, which step and which sample of the problem; then what became of it.
  async function side(source, runs, state, key, { run, id }) {
    const index = await source.index(run);
    const at = viewer.columns.find(index, id);
    const choose = (value) => viewer.state.go({ a: state.a, b: state.b || state.a, [key]: value }, { replace: true });
    const select = (what, label, entries, value, change) => choice(`${key}-${what}`, label, entries, value, change);
    const runChoice = select("run", "Run ", runs.map((one) => [one.key, shown(one.name)]), run, async (other) => choose(name(other, await alike(source, index, at, other))));
    if (at < 0) return { run, element: make("section", { class: "pane" }, runChoice, make("p", { class: "soft" }, "This run has no rollout of the problem.")) };
    const history = viewer.columns.historyOf(index, at);
    const entry = history.find(({ places }) => places.includes(at));
    const id_of = (other) => viewer.columns.record(index, other).id;
    const steps = history.map(({ step, solved, scored, places }) => [`${places[0]}`, `${step} (${solved} of ${scored} passed)`]);
    const samples = entry.places.map((other) => [`${other}`, `#${viewer.columns.record(index, other).sample_index} ${words(viewer.columns.record(index, other).verdict)}`]);
    const open = (value) => choose(name(run, id_of(+value)));
    const rollout = await viewer.sample.load(source, run, id_of(at), null, viewer.columns.record(index, at).verdict);
    const facts = [`${rollout.tests_passed ?? "?"} of ${rollout.tests_total ?? "?"} tests`, rollout.num_tokens === null ? "" : `${rollout.num_tokens} tokens`, rollout.reward === null ? "unscored" : `reward ${+rollout.reward.toFixed(3)}`, rollout.split === "train" && rollout.advantage !== null ? `advantage ${viewer.list.signed(rollout.advantage)}` : ""];
    const element = make(
      "section",
      { class: "pane", "aria-label": `Side ${key}` },
      make("div", { class: "bar-of-tools" }, runChoice, select("step", "Step ", steps, `${entry.places[0]}`, open), select("sample", "Sample ", samples, `${at}`, open)),
      make("h3", {}, make("a", { href: viewer.state.link({ view: "rollouts", run, at: rollout.id }) }, shown(rollout.problem_id))),
      make("p", {}, make("span", { class: `verdict v-${viewer.list.kind(rollout.verdict)}` }, words(rollout.verdict)), make("span", { class: "soft" }, ` ${facts.filter(Boolean).join(" · ")}`)),
    );
    return { run, rollout, element };
  }

  // The rollout of another run that is most like this one: the same problem, the nearest step, the same sample.
  async function alike(source, index, at, otherRun) {
    if (at < 0) return "";
    const other = await source.index(otherRun);
    const { problem_id: problem, split, step, sample_index: sample } = viewer.columns.record(index, at);
    const codes = [other.words.problem_id.indexOf(problem), other.words.split.indexOf(split)];
    const history = other.entries.get(codes[0] * 8 + codes[1]);
    if (!history || codes.includes(-1)) return "";
    const nearest = history.reduce((best, entry) => (Math.abs(entry.step - step) < Math.abs(best.step - step) ? entry : best));
    return viewer.columns.record(other, nearest.places[sample] ?? nearest.places[0]).id;
  }

  function differences(left, right) {
    const part = (title, field) => make("section", {}, make("h3", {}, title), typeof left[field] === "string" && typeof right[field] === "string" ? viewer.code.drawDiff(left[field], right[field], title.toLowerCase()) : make("p", { class: "soft" }, `No ${title.toLowerCase()} on ${typeof left[field] === "string" ? "the right" : "the left"}.`));
    const rows = Array.from({ length: Math.max(left.tests.length, right.tests.length) }, (_, i) => [i, left.tests[i]?.verdict ?? "not run", right.tests[i]?.verdict ?? "not run"]).filter(([, one, other]) => one !== other);
    const verdict = (word) => make("span", { class: `verdict v-${viewer.list.kind(word)}` }, words(word));
    const cells = rows.map(([i, one, other]) => [`test ${i + 1}`, verdict(one), verdict(other)]);
    return make(
      "div",
      { id: "differences" },
      left.problem_id === right.problem_id ? null : make("p", { class: "notice" }, "These are answers to two different problems."),
      part("Program", "program"),
      make("section", {}, make("h3", {}, "Tests that ended differently"), rows.length ? table("Tests that ended differently", ["test", "left", "right"], cells) : make("p", { class: "soft" }, "None.")),
      part("Response", "completion"),
    );
  }

  async function configs(runs, one, other) {
    const [left, right] = [one, other].map((key) => runs.find((run) => run.key === key));
    const [x, y] = [left, right].map((run) => new Map(run.facts.filter(([key]) => key.startsWith("config."))));
    const keys = [...new Set([...x.keys(), ...y.keys()])].filter((key) => x.get(key) !== y.get(key)).sort();
    const others = runs.filter(({ key }) => key !== one && key !== other).map(({ key }) => key);
    const cells = (key) => [key.slice("config.".length), x.get(key) ?? "not set", y.get(key) ?? "not set"];
    return make(
      "section",
      { id: "configs" },
      make("h3", {}, "Config"),
      make("p", {}, make("a", { href: viewer.state.link({ view: "curves", hide: others.join(" ") }) }, "Curves of these two runs over each other")),
      keys.length ? table("Keys in which the configs differ", ["key", left.name, right.name], keys.map(cells)) : make("p", { class: "soft" }, "The two configs are the same."),
    );
  }

  viewer.pages.add({ name: "compare", title: "Compare", keeps: ["a", "b"], render });

  return { name };
})();
