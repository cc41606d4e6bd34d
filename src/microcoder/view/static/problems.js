"use strict";
// Problems over time: a map of pass rates, and lists of those that were learnt, lost, flipped, never or always solved.

viewer.problems = (() => {
  const { make, replace, shown, count, choice } = viewer.page;
  const LISTS = { "": "all", flipped: "flipped", learnt: "learnt", lost: "lost", never: "never solved", always: "always solved" };
  const ROWS_AT_FIRST = 60;
  const MOST_TIMES = 40;

  async function render(main, { source, runs, state, isWanted }) {
    const index = await source.index(state.run);
    if (!isWanted()) return;
    const splits = index.words.split.filter((name) => viewer.columns.problems(index, name).length);
    const split = splits.includes(state.split) ? state.split : splits.includes("heldout") ? "heldout" : splits[0];
    const all = split ? viewer.columns.problems(index, split) : [];
    const listed = all.filter((problem) => !state.list || problem.on[state.list]).sort((a, b) => b.flips - a.flips || (a.id < b.id ? -1 : 1));
    const sizes = Object.entries(LISTS).map(([name, text]) => [name, `${text} (${count(name ? all.filter((problem) => problem.on[name]).length : all.length)})`]);
    const select = (name, label, options, value) => choice(`problems-${name}`, label, options, value, (chosen) => viewer.state.go({ [name]: chosen }, { replace: true }));
    replace(
      main,
      make("h2", { class: "unseen" }, "Problems"),
      make(
        "div",
        { class: "bar-of-tools" },
        select("run", "Run ", runs.map((run) => [run.key, shown(run.name)]), state.run),
        splits.length > 1 ? select("split", "Samples ", splits.map((name) => [name, viewer.filters.SPLITS[name]]), split) : null,
        select("list", "Problems ", sizes, state.list ?? ""),
      ),
      make("p", { class: "soft small" }, "Each cell: samples that passed of those that were scored. A problem counts as solved where at least half of them pass; flipped: it was and then was not, or the other way round; never and always solved: by no sample, by every one."),
      listed.length ? map(listed, state, split) : make("p", { class: "soft" }, "No problem is on this list."),
    );
  }

  // Held-out problems are asked at the same steps, one a column; a training problem is asked now and then.
  function map(listed, state, split) {
    const isTogether = split !== "train";
    const steps = [...new Set(listed.flatMap(({ history }) => history.map(({ step }) => step)))].sort((a, b) => a - b);
    const most = listed.reduce((longest, { history }) => Math.max(longest, history.length), 0);
    const times = isTogether ? steps.slice(-MOST_TIMES) : Array.from({ length: Math.min(most, MOST_TIMES) }, (_, i) => i);
    const left = (isTogether ? steps.length : most) - times.length;
    const head = times.map((time) => make("th", { scope: "col" }, isTogether ? `step ${time}` : `time ${time + 1}`));
    const body = make("tbody", {});
    const add = (from, to) => body.append(...listed.slice(from, to).map((problem) => row(problem)));
    const row = ({ id, tier, history }) => {
      const entries = isTogether ? times.map((step) => history.find((entry) => entry.step === step)) : times.map((i) => history[i]);
      const open = viewer.state.link({ view: "rollouts", run: state.run, problem: id, split, order: "first" });
      return make("tr", {}, make("th", { scope: "row" }, make("a", { href: open }, shown(id)), tier ? make("span", { class: "soft small" }, ` ${shown(tier)}`) : null), entries.map((entry, i) => cell(id, entry, `${isTogether ? "step" : "time"} ${isTogether ? times[i] : i + 1}`)));
    };
    const cell = (id, entry, label) => {
      if (!entry) return make("td", {});
      const rate = entry.scored ? Math.round((10 * entry.solved) / entry.scored) : "none";
      const open = viewer.state.link({ view: "rollouts", run: state.run, problem: id, split, step: entry.step, order: "first" });
      return make("td", { class: `rate rate-${rate}${entry.isFlipped ? " flipped" : ""}`, "data-label": label }, make("a", { href: open, title: `step ${entry.step}${entry.isFlipped ? ", flipped" : ""}` }, `${entry.solved}/${entry.scored}`));
    };
    add(0, ROWS_AT_FIRST);
    const rest = listed.length - ROWS_AT_FIRST;
    const more = rest > 0 ? make("button", { type: "button", click: () => (more.remove(), add(ROWS_AT_FIRST, listed.length)) }, `Show ${count(rest)} more problems`) : null;
    return make(
      "section",
      {},
      left > 0 ? make("p", { class: "soft small" }, `${left} earlier columns are left out.`) : null,
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Pass rates of problems over steps" }, make("table", { class: "map" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Problem"), head)), body)),
      more,
    );
  }

  viewer.pages.add({ name: "problems", title: "Problems", key: "p", keeps: ["split", "list"], render });
})();
