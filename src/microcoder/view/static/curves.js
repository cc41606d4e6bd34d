"use strict";
// The view of curves: which runs, how smooth, one chart a quantity, then tables and facts of each run.

viewer.curves = (() => {
  const { make, replace, shown, table, choice } = viewer.page;
  const SMOOTHINGS = { 1: "none", 5: "5 steps", 20: "20 steps", 100: "100 steps" };
  const watcher = new ResizeObserver(() => requestAnimationFrame(refit));
  let fitted = 0;
  let fit = () => {};

  function refit() {
    const grid = document.querySelector(".charts");
    if (grid && Math.abs(grid.clientWidth - fitted) > 8) fit();
  }

  function render(main, runs, state) {
    const hidden = new Set((state.hide ?? "").split(" ").filter(Boolean));
    const smoothing = +(state.smooth in SMOOTHINGS ? state.smooth : 1);
    const grid = make("div", { class: "charts" });
    const charted = runs.filter((run) => run.charts.length);
    replace(
      main,
      make("h2", { class: "unseen" }, "Curves"),
      make("div", { class: "bar-of-tools" }, chooser(runs, hidden), charted.length ? smoother(smoothing) : null),
      ...runs.flatMap((run) => run.notices.map((text) => make("p", { class: "notice" }, `${shown(run.name)}: ${shown(text)}`))),
      charted.length ? make("p", { class: "soft small" }, "Dots are held-out samples, with 95 % intervals on accuracy; lines are training rollouts.") : null,
      grid,
      ...runs.filter((run) => !hidden.has(run.key)).flatMap(about),
    );
    fit = () => {
      fitted = grid.clientWidth;
      const columns = Math.max(1, Math.floor(fitted / 400));
      const width = Math.floor((fitted - 20 * (columns - 1)) / columns);
      replace(grid, draw(runs, hidden, { width, smoothing }));
    };
    fit();
    watcher.disconnect();
    watcher.observe(main);
  }

  // All charts of the runs that are not hidden, or the one that is asked for.
  function draw(runs, hidden, { only, ...options }) {
    const charts = new Map();
    runs.forEach((run, colour) => {
      if (hidden.has(run.key)) return;
      for (const { id, title, unit, series } of run.charts) {
        if (only && id !== only) continue;
        if (!charts.has(id)) charts.set(id, { title, unit, lines: [] });
        charts.get(id).lines.push(...series.map((line) => ({ ...line, run: run.key, name: run.name, colour })));
      }
    });
    return [...charts.values()].map(({ title, unit, lines }) => {
      const open = (step) => viewer.state.go({ view: "rollouts", run: lines[0].run, step, at: "", from: "" });
      return viewer.chart.chart(title, unit, lines, { ...options, open });
    });
  }

  function chooser(runs, hidden) {
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
        run.charts.length ? make("i", { class: `swatch run-${colour % 8}` }) : null,
        make("span", {}, shown(run.name)),
        make("span", { class: "soft" }, ` ${shown(run.state)}`),
      );
    };
    return make("fieldset", {}, make("legend", { class: "unseen" }, "Runs"), runs.map(box));
  }

  function smoother(smoothing) {
    const change = (value) => viewer.state.go({ smooth: value === "1" ? "" : value }, { replace: true });
    return choice("smooth", "Smoothing ", Object.entries(SMOOTHINGS), `${smoothing}`, change);
  }

  function about(run) {
    const facts = run.facts.length
      ? make("details", {}, make("summary", {}, `About ${shown(run.name)}`), make("dl", { class: "facts" }, run.facts.flatMap(([name, value]) => [make("dt", {}, shown(name)), make("dd", {}, shown(value))])))
      : null;
    return [...run.tables.map(({ title, columns, rows }) => make("section", {}, make("h3", {}, `${shown(run.name)}: ${shown(title)}`), table(title, columns, rows))), facts].filter(Boolean);
  }

  return { render, draw, about };
})();
