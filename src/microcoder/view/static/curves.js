"use strict";
// The view of curves: which runs, how they are drawn, charts by group, then tables and facts of each run.

viewer.curves = (() => {
  const { make, replace, shown, table, choice } = viewer.page;
  const SMOOTHINGS = { 1: "none", 5: "5 steps", 20: "20 steps", 100: "100 steps" };
  const GROUPS = { reward: "Reward", length: "Length", diversity: "Diversity", doses: "Doses", optimisation: "Optimisation", judging: "Judging", time: "Time" };
  const GAP = 20;
  const LEAST_WIDTH = 400;
  const watcher = new ResizeObserver(() => requestAnimationFrame(refit));
  const isNarrow = matchMedia("(max-width: 600px)");
  let fitted = 0;
  let isUnfolded = false; // the tools, in a narrow window

  function widthIn(place) {
    const columns = Math.max(1, Math.floor((place.clientWidth + GAP) / (LEAST_WIDTH + GAP)));
    return Math.floor((place.clientWidth - GAP * (columns - 1)) / columns);
  }

  function refit() {
    const place = document.getElementById("groups");
    if (!place || Math.abs(place.clientWidth - fitted) < 8) return;
    fitted = place.clientWidth;
    for (const field of place.querySelectorAll(".plot")) field.plot.setSize({ width: widthIn(place), height: field.plot.height });
  }

  function render(main, { runs, state }) {
    const hidden = new Set((state.hide ?? "").split(" ").filter(Boolean));
    const charted = runs.filter((run) => run.charts.length);
    const recipes = group(charted.filter((run) => !hidden.has(run.key)));
    const place = make("div", { id: "groups" });
    replace(
      main,
      make("h2", { class: "unseen" }, "Curves"),
      make("div", { class: "bar-of-tools" }, chooser(runs, hidden), charted.length ? tools(charted, recipes, state) : null),
      ...runs.flatMap((run) => run.notices.map((text) => make("p", { class: "notice" }, `${shown(run.name)}: ${shown(text)}`))),
      charted.length ? make("p", { class: "soft small" }, "Dots are held-out samples, with 95 % intervals on accuracy; lines are training rollouts. Drag to zoom; a click opens the step's rollouts.") : null,
      place,
      ...runs.filter((run) => !hidden.has(run.key)).flatMap(about),
    );
    const charts = draw(runs, hidden, { ...options(state), width: widthIn(place) });
    replace(place, Object.entries(GROUPS).map(([name, title]) => section(name, title, charts, state)));
    search(state.find ?? "");
    watch(main);
  }

  // Charts in `#groups` are as wide as their columns, whatever becomes of the window.
  function watch(main) {
    fitted = document.getElementById("groups").clientWidth;
    watcher.disconnect();
    watcher.observe(main);
  }

  function options(state) {
    const ends = /^([\d.]+)-([\d.]+)$/.exec(state.span ?? "");
    return {
      smoothing: +(state.smooth in SMOOTHINGS ? state.smooth : 1),
      isLog: state.y === "log",
      isTimed: state.x === "time",
      isMean: state.mean === "yes",
      span: ends && +ends[1] < +ends[2] ? [+ends[1], +ends[2]] : null,
      zoom: (first, last) => viewer.state.go({ span: state.x === "time" ? `${first.toFixed(1)}-${last.toFixed(1)}` : `${Math.max(0, Math.floor(first))}-${Math.ceil(last)}` }),
    };
  }

  function section(name, title, charts, state) {
    const own = charts.filter((chart) => chart.group === name);
    if (!own.length) return null;
    const folded = new Set((state.fold ?? "").split(" ").filter(Boolean));
    const toggle = (event) => {
      if (event.target.open) folded.delete(name);
      else folded.add(name);
      viewer.state.note({ fold: [...folded].join(" ") });
    };
    const count = make("span", { class: "soft small" }, ` ${own.length}`);
    return make("details", { class: "group-of-charts", id: `group-${name}`, open: !folded.has(name), toggle }, make("summary", {}, make("h3", {}, title), count), make("div", { class: "charts" }, own.map(({ element }) => element)));
  }

  // Charts whose title holds the words; a group without one goes, and a folded one with some opens.
  function search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const place of document.querySelectorAll(".group-of-charts")) {
      const title = place.querySelector("h3").textContent.toLowerCase();
      const figures = [...place.querySelectorAll("figure")];
      for (const one of figures) one.hidden = !words.every((word) => `${title} ${one.dataset.title}`.includes(word));
      const found = figures.filter((one) => !one.hidden).length;
      place.hidden = !found;
      if (words.length && found) place.open = true;
    }
  }

  // Runs by recipe: their configs are the same but for the seed.
  function group(runs) {
    const found = new Map();
    for (const run of runs) {
      const config = run.facts.filter(([key]) => key.startsWith("config.") && key !== "config.seed");
      const recipe = config.length ? JSON.stringify(config) : run.key;
      found.set(recipe, [...(found.get(recipe) ?? []), run]);
    }
    return [...found.values()];
  }

  // All charts of the runs that are not hidden, or the one that is asked for: [{group, element}].
  function draw(runs, hidden, { only, isMean, ...options }) {
    const charts = new Map();
    const visible = runs.filter((run) => !hidden.has(run.key) && run.charts.length);
    const sets = isMean ? group(visible) : visible.map((run) => [run]);
    for (const set of sets) {
      const clocks = set.map((run) => clockOf(run));
      for (const { id, title, unit, group: name, series } of set[0].charts) {
        if (only && id !== only) continue;
        const isOne = sets.length === 1;
        const colour = isOne ? 0 : runs.indexOf(set[0]);
        for (const { label } of series) {
          const found = set.map((run, i) => lineOf(run, id, label, options.isTimed ? clocks[i] : null));
          if (found.includes(null)) continue;
          const line = set.length === 1 ? found[0] : mean(set, found);
          const isTraining = label !== "held out";
          const look = isOne ? { colour: isTraining ? (label === "limit" ? 7 : 0) : 1, isFaint: false } : { colour, isFaint: isTraining };
          if (!charts.has(id)) charts.set(id, { title, unit, group: name, lines: [] });
          charts.get(id).lines.push({ ...line, ...look, label, run: set[0].key, name: set.length === 1 ? set[0].name : nameOf(set) });
        }
      }
    }
    const open = ({ run, label }, step) => viewer.state.go({ view: "rollouts", run, step, split: { training: "train", "held out": "heldout" }[label] ?? "", at: "", from: "" });
    return [...charts.values()].map(({ title, unit, group: name, lines }) => ({ group: name, element: viewer.chart.chart(title, unit, lines, { ...options, open }) }));
  }

  // Seconds by step; the untrained model is at 0.
  function clockOf(run) {
    return run.clock.length ? new Map([[0, 0], ...run.clock]) : null;
  }

  function lineOf(run, id, label, clock) {
    const line = run.charts.find((chart) => chart.id === id)?.series.find((one) => one.label === label);
    if (!line) return null;
    if (!clock) return { ...line, xs: line.steps };
    const kept = line.steps.map((step, i) => i).filter((i) => clock.has(line.steps[i]));
    const pick = (values) => values && kept.map((i) => values[i]);
    const picked = { ...line, steps: pick(line.steps), values: pick(line.values), low: pick(line.low), high: pick(line.high) };
    return kept.length ? { ...picked, xs: picked.steps.map((step) => clock.get(step)) } : null;
  }

  // The mean of some runs at the steps that all of them have, with the smallest and the largest.
  function mean(set, lines) {
    const values = lines.map((line) => new Map(line.steps.map((step, i) => [step, line.values[i]])));
    const xs = lines.map((line) => new Map(line.steps.map((step, i) => [step, line.xs[i]])));
    const steps = lines[0].steps.filter((step) => values.every((one) => one.has(step)));
    const over = (tables, reduce) => steps.map((step) => reduce(tables.map((one) => one.get(step))));
    const average = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
    return { steps, xs: over(xs, average), values: over(values, average), low: over(values, (all) => Math.min(...all)), high: over(values, (all) => Math.max(...all)), hasBand: true };
  }

  function nameOf(set) {
    const [first, ...others] = set.map(({ name }) => name);
    let length = first.length;
    while (!others.every((name) => name.startsWith(first.slice(0, length)))) length--;
    return `${first.slice(0, length).replace(/[\s\-_.:]+$/, "") || first}, mean of ${set.length} runs`;
  }

  function chooser(runs, hidden) {
    const isAlone = runs.filter((run) => !hidden.has(run.key) && run.charts.length).length === 1;
    const box = (run, colour) => {
      const toggle = (event) => {
        if (event.target.checked) hidden.delete(run.key);
        else hidden.add(run.key);
        viewer.state.go({ hide: [...hidden].join(" ") }, { replace: true });
      };
      return make(
        "label",
        { class: "choice" },
        make("input", { type: "checkbox", checked: !hidden.has(run.key), change: toggle, id: `show-${colour}` }),
        run.charts.length && !isAlone ? make("i", { class: `swatch run-${colour % 8}` }) : null,
        make("span", {}, shown(run.name)),
        make("span", { class: "soft" }, ` ${shown(run.state)}`),
      );
    };
    return make("fieldset", {}, make("legend", { class: "unseen" }, "Runs"), runs.map(box));
  }

  function tools(charted, recipes, state) {
    const set = (name, plain) => (value) => viewer.state.go({ [name]: value === plain ? "" : value, ...(name === "x" ? { span: "" } : {}) }, { replace: true });
    const find = (event) => {
      viewer.state.note({ find: event.target.value });
      search(event.target.value);
    };
    const hasClock = charted.every((run) => run.clock.length);
    const hasSeeds = recipes.some((own) => own.length > 1);
    const average = (event) => viewer.state.go({ mean: event.target.checked ? "yes" : "" }, { replace: true });
    const zoomed = (event) => viewer.state.go({ span: event.target.value.replace(/\s/g, "") }, { replace: true });
    const words = make("label", { class: "choice" }, "Charts ", make("input", { id: "find", type: "search", placeholder: "words of a title", value: state.find ?? "", input: find }));
    const drawing = [
      choice("x-axis", "By ", [["step", "step"], ...(hasClock ? [["time", "wall time"]] : [])], state.x ?? "step", set("x", "step")),
      choice("y-axis", "Scale ", [["linear", "linear"], ["log", "log"]], state.y ?? "linear", set("y", "linear")),
      choice("smooth", "Smoothing ", Object.entries(SMOOTHINGS), state.smooth ?? "1", set("smooth", "1")),
      hasSeeds ? make("label", { class: "choice" }, make("input", { id: "mean", type: "checkbox", checked: state.mean === "yes", change: average }), "Mean of runs that differ in the seed alone; band: smallest to largest") : null,
      make("label", { class: "choice" }, state.x === "time" ? "Seconds " : "Steps ", make("input", { id: "span", size: 9, placeholder: "first-last", value: state.span ?? "", change: zoomed, autocomplete: "off" })),
      state.span ? make("button", { type: "button", id: "unzoom", click: () => viewer.state.go({ span: "" }) }, "Whole range") : null,
    ];
    if (!isNarrow.matches) return [words, ...drawing];
    const toggle = (event) => (isUnfolded = event.target.open);
    return [words, make("details", { open: isUnfolded, toggle }, make("summary", {}, "Axes, smoothing and zoom"), make("div", { class: "bar-of-tools" }, drawing))];
  }

  function about(run) {
    const facts = run.facts.length
      ? make("details", {}, make("summary", {}, `About ${shown(run.name)}`), make("dl", { class: "facts" }, run.facts.flatMap(([name, value]) => [make("dt", {}, shown(name)), make("dd", {}, shown(value))])))
      : null;
    return [...run.tables.map(({ title, columns, rows }) => make("section", {}, make("h3", {}, `${shown(run.name)}: ${shown(title)}`), table(title, columns, rows))), facts].filter(Boolean);
  }

  viewer.pages.add({
    name: "curves",
    title: "Curves",
    key: "c",
    keeps: ["hide", "smooth", "x", "y", "mean", "span", "find", "fold"],
    isThere: (runs) => runs.some((run) => run.charts.length || run.tables.length || run.facts.length),
    render,
  });

  return { draw, about, group, watch, widthIn };
})();
