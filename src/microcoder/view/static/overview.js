"use strict";
// What happened in a training run: headline, a few sentences, comparisons and warnings. The page opens here.

viewer.overview = (() => {
  const { make, replace, shown, table, choice } = viewer.page;

  async function render(main, { source, runs, state, isWanted }) {
    const trained = runs.filter(({ kind }) => kind === "training");
    const run = trained.find(({ key }) => key === state.run) ?? trained[0];
    const told = await source.overview(run.key);
    if (!isWanted()) return;
    const choose = (key) => viewer.state.go({ run: key }, { replace: true });
    const charts = viewer.curves.draw(runs, new Set(), { width: Math.min(640, main.clientWidth - 32), smoothing: 1, only: "accuracy" });
    replace(
      main,
      trained.length > 1 ? choice("overview-run", "Run ", trained.map(({ key, name }) => [key, shown(name)]), run.key, choose) : null,
      make("h2", {}, shown(told.title), make("b", { class: "badge" }, told.state)),
      make("p", { class: "soft" }, shown(told.about)),
      headline(told, run.key),
      viewer.notes.list(run.key),
      ...[...told.notices, ...run.notices].map((text) => make("p", { class: "notice" }, shown(text))),
      ...told.tables.map(section),
      make("h3", {}, "Curves"),
      make("div", {}, charts.map(({ element }) => element)),
      make("p", {}, make("a", { href: viewer.state.link({ view: "curves" }) }, "All curves")),
      make("h3", {}, "Reproduce"),
      told.reproduce ? make("pre", { tabindex: 0 }, shown(told.reproduce)) : make("p", { class: "soft" }, "The manifest names neither a command nor a commit."),
      ...viewer.curves.about(run),
    );
  }

  function headline({ headline: { figures, difference, text, finding }, story }, run) {
    const link = (name, state) => make("a", { href: viewer.state.link({ run, ...state }) }, name);
    const problems = difference ? link("problems that changed", { view: "problems", split: "heldout", list: "flipped" }) : null;
    return make(
      "section",
      { id: "headline", "aria-label": "Headline" },
      make("p", { class: "figures" }, figures.join(" → "), Array.isArray(difference) ? make("span", { class: difference[1] }, ` ${difference[0]}`) : null),
      make("p", {}, text, finding ? make("strong", {}, ` ${finding}`) : null, " ", problems),
      make("ul", { id: "story" }, story.map(([text, name, state]) => make("li", {}, `${shown(text)} `, link(shown(name), state)))),
    );
  }

  function section({ id, title, columns, rows, note }) {
    return make("section", { id, class: "report" }, make("h3", {}, title), table(title, columns, rows), note ? make("p", { class: "soft small" }, shown(note)) : null);
  }

  viewer.pages.add({ name: "overview", title: "Overview", key: "o", isThere: (runs) => runs.some(({ kind }) => kind === "training"), render });
})();
