"use strict";
// What other decisions would have made of a run's rollouts: `microcoder replay RUN --save` has computed all of it.

viewer.replay = (() => {
  const { make, replace, shown, count, table, choice } = viewer.page;

  async function render(main, { source, runs, state, isWanted }) {
    const replayed = runs.filter((run) => run.has_replay);
    const run = replayed.find(({ key }) => key === state.run) ?? replayed[0];
    const told = await source.replay(run.key);
    if (!isWanted()) return;
    const choose = (key) => viewer.state.go({ run: key }, { replace: true });
    const charts = make("div", { class: "charts" });
    const place = make("div", { id: "groups" }, charts, payments(told, run.key));
    replace(
      main,
      replayed.length > 1 ? choice("replay-run", "Run ", replayed.map(({ key, name }) => [key, shown(name)]), run.key, choose) : null,
      make("h2", {}, `Replay of ${shown(run.name)}`),
      make("p", { id: "limits" }, make("strong", {}, shown(told.limits))),
      told.warning ? make("p", { class: "notice", id: "changed" }, shown(told.warning)) : null,
      make("p", { class: "soft" }, shown(told.about)),
      told.reproduction ? make("p", { class: told.is_exact ? "soft" : "notice" }, shown(told.reproduction)) : null,
      table("Recorded and alternatives", ["Decided by", ...told.columns.slice(1)], told.rows),
      ...told.alternatives.map((one) => alternative(one, run.key)),
      make("h3", {}, "By step"),
      told.alternatives.length ? make("p", { class: "soft small" }, "A click, or Enter, on a step opens the rollouts that the alternative decides otherwise there.") : null,
      place,
      told.notes.length ? make("section", {}, make("h3", {}, "Not recorded, and so not answered"), make("ul", {}, told.notes.map((text) => make("li", {}, shown(text))))) : null,
    );
    const width = viewer.curves.widthIn(place);
    const open = (line, step) => viewer.state.go({ ...asked(run.key, step), differs: differsBy(told, line.label, step) });
    const openPaid = (_, step) => viewer.state.go(asked(run.key, step));
    const colours = ["recorded", ...told.alternatives.map(({ name }) => name)];
    const draw = ({ title, unit, lines, mark }, opens) => {
      const drawn = lines.map((line) => ({ ...line, run: run.key, name: run.name, xs: line.steps, colour: Math.max(0, colours.indexOf(line.label)) }));
      return viewer.chart.chart(title, unit, drawn, { width, smoothing: 1, mark, open: opens });
    };
    replace(charts, told.charts.map((chart) => draw(chart, open)));
    if (told.paid) document.getElementById("paid").append(make("div", { class: "charts" }, draw(told.paid, openPaid)));
    viewer.curves.watch(main);
  }

  const asked = (run, step) => ({ view: "rollouts", run, split: "train", step, order: "first", differs: "", at: "", from: "" });

  // The line's own alternative; of the recorded line, or of a key, the first that differs at the step.
  function differsBy({ alternatives }, label, step) {
    const own = alternatives.find(({ name }) => name === label);
    return (own ?? alternatives.find(({ differing }) => differing[step]))?.name ?? "";
  }

  function alternative({ name, sentences, differing }, run) {
    const steps = Object.keys(differing);
    const total = steps.reduce((sum, step) => sum + differing[step].length, 0);
    const link = (step, text) => make("a", { href: viewer.state.link({ ...asked(run, step), differs: name }) }, text);
    const links = steps.length
      ? [
          make("p", {}, "Rollouts that differ: ", link(steps[0], `the first, in step ${steps[0]} (${count(differing[steps[0]].length)})`), " · ", link("", `all (${count(total)})`)),
          make("details", {}, make("summary", {}, `By step (${count(steps.length)})`), make("ul", { class: "members" }, steps.map((step) => make("li", {}, link(step, `step ${step}: ${count(differing[step].length)}`))))),
        ]
      : [make("p", { class: "soft" }, "No rollout is decided otherwise.")];
    return make("section", { class: "alternative" }, make("h3", {}, shown(name)), make("ul", {}, sentences.map((text) => make("li", {}, shown(text)))), ...links);
  }

  function payments({ payments: sentences, paid, ways, weak }, run) {
    if (!sentences.length) return null;
    const example = ({ step, problem_id: problem, sample_index: sample }) => make("a", { href: viewer.state.link({ ...asked(run, step), problem }) }, `${shown(problem)} sample ${sample}, step ${step}`);
    // Of a run without a rise there is no before and after.
    const since = paid?.mark ? [`before step ${paid.mark}`, "since"] : ["rollouts"];
    const rows = ways.map((way) => [way.way, ...[way.before, way.since].slice(0, since.length).map(count), make("span", {}, example(way))]);
    // The ways stand in the table below.
    const told = sentences.filter((text) => !text.startsWith("  "));
    return make(
      "section",
      { id: "paid" },
      make("h3", {}, "Paid and wrong"),
      make("p", {}, shown(told.join(" "))),
      weak ? make("p", {}, shown(weak)) : null,
      rows.length ? table("How wrong programs were paid", ["How they won", ...since, "an example"], rows) : null,
      paid ? make("p", { class: "soft small" }, `Bars are 95 % intervals.${paid.mark ? ` The dashed line is step ${paid.mark}, where the share begins to rise.` : ""} A click, or Enter, opens the step's rollouts.`) : null,
    );
  }

  // Bits of the rollouts that an alternative decides otherwise, of those that a search has left.
  async function narrow(source, { run, differs }, index, hits) {
    const { alternatives } = await source.replay(run);
    const found = alternatives.find(({ name }) => name === differs);
    if (!found) throw new Error(`differs=${differs} is no alternative of this run's replay; its page lists them`);
    const { columns, words, num } = index;
    const split = words.split.indexOf("train");
    const rows = new Map(Object.entries(found.differing).map(([step, all]) => [+step, new Set(all)]));
    const bits = new Uint8Array(Math.ceil(num / 8));
    for (let place = 0; place < num; place++) {
      const isIn = columns.split[place] === split && rows.get(columns.step[place])?.has(columns.row[place]);
      if (isIn && (!hits || (hits[place >> 3] >> (place & 7)) & 1)) bits[place >> 3] |= 1 << (place & 7);
    }
    return bits;
  }

  viewer.pages.add({ name: "replay", title: "Replay", key: "w", isThere: (runs) => runs.some((run) => run.has_replay), render });
  return { narrow };
})();
