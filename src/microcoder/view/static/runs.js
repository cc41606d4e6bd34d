"use strict";
// A table of the open runs: how far they are, what came out, and the keys in which their configs differ.

viewer.runs = (() => {
  const { make, replace, shown, figure, table, choice } = viewer.page;

  // The first or last value of a run's curve; null where it has none.
  function value(run, chart, label, place = -1) {
    const line = run.charts.find(({ id }) => id === chart)?.series.find((one) => one.label === label);
    return line?.values.at(place) ?? null;
  }

  function columnsOf(runs) {
    const share = (name) => (number) => (number === null ? "" : figure(number, name));
    const fixed = [
      { id: "name", title: "Run", read: (run) => run.name },
      { id: "state", title: "State", read: (run) => run.state },
      { id: "started", title: "Started", read: (run) => (run.facts.find(([key]) => key === "started")?.[1] ?? "").slice(0, 16).replace("T", " ") },
      { id: "steps", title: "Steps", read: (run) => Math.max(...run.charts.flatMap(({ series }) => series.map(({ steps }) => steps.at(-1))), -1), show: (number) => (number < 0 ? "" : `${number}`) },
      { id: "before", title: "Held out, before", read: (run) => value(run, "accuracy", "held out", 0), show: share("share") },
      { id: "after", title: "Held out, last", read: (run) => value(run, "accuracy", "held out"), show: share("share") },
      { id: "reward", title: "Reward, last", read: (run) => value(run, "reward", "training"), show: share("share") },
      { id: "length", title: "Tokens, last", read: (run) => value(run, "length", "training"), show: share("count") },
    ];
    const used = fixed.filter(({ read }) => runs.some((run) => ![null, "", -1].includes(read(run))));
    return [...used, ...differing(runs)];
  }

  // Keys of the configs that are not the same in all training runs.
  function differing(runs) {
    const configs = runs.map((run) => new Map(run.facts.filter(([key]) => key.startsWith("config."))));
    const known = configs.filter((config) => config.size);
    const keys = [...new Set(known.flatMap((config) => [...config.keys()]))].sort();
    const found = keys.filter((key) => new Set(known.map((config) => config.get(key))).size > 1);
    return found.map((key) => ({ id: key, title: key.slice("config.".length), read: (run) => configs[runs.indexOf(run)].get(key) ?? "", isConfig: true }));
  }

  // Numbers by their value, texts by letters; what is not there comes last.
  function ordered(runs, column, isDown) {
    const rank = (run) => {
      const found = column.read(run);
      const number = typeof found === "string" && found.trim() ? Number(found) : found;
      return found === null || found === "" || found === -1 ? null : Number.isNaN(number) ? found : number;
    };
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : `${a}`.localeCompare(`${b}`, "en", { numeric: true }));
    return [...runs].sort((one, other) => {
      const [a, b] = [rank(one), rank(other)];
      if (a === null || b === null) return (a === null) - (b === null);
      return (isDown ? -1 : 1) * compare(a, b);
    });
  }

  function render(main, { runs, state }) {
    const columns = columnsOf(runs);
    const sorted = columns.find(({ id }) => id === state.sort);
    const isDown = state.down === "yes";
    const shownRuns = sorted ? ordered(runs, sorted, isDown) : runs;
    const heading = (column) => {
      const isSorted = column === sorted;
      const next = { sort: column.id, down: isSorted && !isDown ? "yes" : "" };
      const mark = isSorted ? (isDown ? " ↓" : " ↑") : "";
      const sort = make("button", { type: "button", class: "sort", id: `sort-${column.id}`, click: () => viewer.state.go(next, { replace: true }) }, shown(column.title), mark);
      const order = isSorted ? (isDown ? "descending" : "ascending") : "none";
      return [column.title, make("th", { scope: "col", role: "columnheader", "aria-sort": order, class: column.isConfig ? "config" : null }, sort)];
    };
    const cell = (run) => (column) => {
      if (column.id === "name") return make("span", {}, make("a", { href: viewer.state.link({ view: viewer.pages.choose("overview", [run]).name, run: run.key }) }, shown(run.name)));
      return (column.show ?? ((text) => `${text}`))(column.read(run));
    };
    const differences = columns.filter(({ isConfig }) => isConfig).length;
    replace(
      main,
      make("h2", { class: "unseen" }, "Runs"),
      make("p", { class: "soft small" }, differences ? `Right of the results: ${differences} ${differences === 1 ? "key" : "keys"} in which the configs differ. A heading sorts.` : "The runs' configs do not differ. A heading sorts."),
      make("div", { class: "only-narrow" }, choice("sort-by", "Sort by ", [["", "as opened"], ...columns.map(({ id, title }) => [id, shown(title)])], state.sort ?? "", (id) => viewer.state.go({ sort: id, down: "" }, { replace: true }))),
      make("div", { class: "runs" }, table("Runs", columns.map(heading), shownRuns.map((run) => columns.map(cell(run))))),
    );
  }

  viewer.pages.add({ name: "runs", title: "Runs", key: "t", keeps: ["sort", "down"], isThere: (runs) => runs.length > 1, render });
})();
