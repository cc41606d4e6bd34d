"use strict";
// The page of rollouts: the list, the filters folded below it, and the rollout that is open. What is drawn already and
// has not changed stays, so that a list keeps its place and a field its focus.

viewer.rollouts = (() => {
  const { make, replace, say, words } = viewer.page;
  let form = null; // the filters, with the index they are of
  let places = null; // where list, filters and sample are drawn
  let drawn = { list: null, sample: "" };

  async function render(main, { source, runs, state, isWanted }) {
    const index = await source.index(state.run);
    const isSame = () => isWanted() && viewer.main.current().run === state.run;
    if (!isSame()) return;
    if (!places?.list.isConnected) {
      places = {
        list: make("div", { class: "list" }),
        filters: make("div", { class: "folded" }),
        sample: make("article", { class: "sample", "aria-label": "Sample" }),
      };
      drawn = { list: null, sample: "" };
      form = null;
      replace(main, make("h2", { class: "unseen" }, "Rollouts"), make("div", { class: "side" }, places.list, places.filters), places.sample);
    }
    const isTyping = form?.run === state.run && form.element.contains(document.activeElement) && document.activeElement.matches("input[type=search]");
    if (form?.index !== index && !isTyping) {
      const isOpen = form?.element.open ?? false;
      form = { run: state.run, index, element: viewer.filters.build(runs, state, viewer.columns.facets(index), Boolean(source.search)) };
      form.element.open = isOpen;
      replace(places.filters, form.element);
    }
    viewer.filters.fill(form.element, state);
    await Promise.all([showList(source, state, isSame), showSample(source, runs, state, index, isSame)]);
  }

  async function showList(source, state, isSame) {
    const answer = await viewer.list.load(source, state);
    if (!answer || !isSame()) return;
    if (drawn.list !== answer) {
      viewer.list.render(places.list, viewer.main.current());
      say(`${answer.total} rollouts`);
    }
    drawn.list = answer;
    viewer.list.mark(places.list, viewer.main.current());
    const standing = document.getElementById("standing");
    if (standing) standing.textContent = viewer.list.standing(viewer.main.current());
  }

  async function showSample(source, runs, state, index, isSame) {
    if (!state.at) {
      drawn.sample = "";
      viewer.sample.invite(places.sample, state, index);
      return;
    }
    const search = viewer.state.search(state);
    const place = viewer.columns.find(index, state.at);
    const verdict = place < 0 ? "" : viewer.columns.record(index, place).verdict;
    const key = JSON.stringify([state.run, state.at, search, verdict]);
    if (drawn.sample === key) return;
    const rollout = await viewer.sample.load(source, state.run, state.at, search, verdict);
    if (!isSame() || viewer.main.current().at !== state.at) return;
    drawn.sample = key;
    viewer.sample.render(places.sample, source, viewer.main.current(), index, rollout);
    places.sample.scrollTop = 0;
    if (getComputedStyle(document.querySelector(".side")).display === "none") scrollTo(0, 0);
    viewer.hits.show(places.sample, rollout.matches);
    say(`${rollout.problem_id}, sample ${rollout.sample_index}, ${words(rollout.verdict)}`);
    // The neighbours are read ahead, so that j and k show them at once.
    for (const row of [1, -1].map((direction) => viewer.list.neighbour(state, direction))) {
      if (row) viewer.sample.load(source, state.run, row.id, search, row.verdict).catch(() => null);
    }
  }

  viewer.pages.add({ name: "rollouts", title: "Rollouts", key: "r", keeps: [...viewer.state.FILTERS, "at", "from"], render });
})();
