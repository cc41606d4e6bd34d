"use strict";
// The state decides what is shown; every change goes through the address.

(async () => {
  const { make, replace, say, alarm, words } = viewer.page;
  const source = viewer.bundleSource.isHere() ? viewer.bundleSource : viewer.serverSource;
  const main = document.getElementById("main");
  const SECONDS_BETWEEN_LOOKS = 2;
  let runs = [];
  let form = null; // the filters, with the index they are of
  let places = null; // where list and sample are drawn
  let drawn = { list: null, sample: "" };

  function current() {
    const state = viewer.state.read();
    if (!runs.some((run) => run.key === state.run)) state.run = runs[0].key;
    return state;
  }

  function mark(view) {
    const { hide, smooth, run, pin, ...rest } = viewer.state.read();
    const kept = { overview: {}, curves: {}, rollouts: rest, problems: { split: rest.split, list: rest.list }, compare: { a: rest.a, b: rest.b } };
    for (const name of viewer.state.VIEWS) {
      const tab = document.getElementById(`tab-${name}`);
      if (name === view) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
      tab.href = viewer.state.link({ ...kept[name], hide, smooth, run, pin, view: name });
    }
  }

  async function render() {
    const state = current();
    mark(state.view);
    document.body.dataset.view = state.view;
    document.body.classList.toggle("has-sample", state.view === "rollouts" && Boolean(state.at));
    alarm(null);
    try {
      if (state.view === "rollouts") await showRollouts(state);
      else await showPage(state);
    } catch (error) {
      alarm(error);
    }
  }

  async function showPage(state) {
    places = null;
    document.title = `${state.view[0].toUpperCase()}${state.view.slice(1)} – MicroCoder`;
    if (state.view === "curves") viewer.curves.render(main, runs, state);
    else if (state.view === "overview") await viewer.overview.render(main, source, runs, state, () => current().view === "overview");
    else if (state.view === "problems") await viewer.problems.render(main, source, runs, state, () => current().view === "problems");
    else await viewer.compare.render(main, source, runs, state, () => current().view === "compare");
  }

  async function showRollouts(state) {
    document.title = `${state.at || "Rollouts"} – MicroCoder`;
    const index = await source.index(state.run);
    if (current().run !== state.run || current().view !== "rollouts") return;
    if (!places) {
      places = { filters: make("div"), list: make("div", { class: "list" }), sample: make("article", { class: "sample", "aria-label": "Sample" }) };
      drawn = { list: null, sample: "" };
      form = null;
      replace(main, make("div", { class: "side" }, places.filters, places.list), places.sample);
    }
    if (form?.index !== index && !(form?.run === state.run && form.element.contains(document.activeElement))) {
      form = { run: state.run, index, element: viewer.filters.build(runs, state, viewer.columns.facets(index), Boolean(source.search)) };
      replace(places.filters, form.element);
    }
    viewer.filters.fill(form.element, state);
    await Promise.all([showList(state), showSample(state, index)]);
  }

  async function showList(state) {
    const answer = await viewer.list.load(source, state);
    if (!answer || !places) return;
    if (drawn.list !== answer) {
      viewer.list.render(places.list, current());
      say(`${answer.total} rollouts`);
    }
    drawn.list = answer;
    viewer.list.mark(places.list, current());
    const standing = document.getElementById("standing");
    if (standing) standing.textContent = viewer.list.standing(current());
  }

  async function showSample(state, index) {
    if (!state.at) {
      drawn.sample = "";
      viewer.sample.invite(places.sample, state, viewer.columns.facets(index));
      return;
    }
    const search = viewer.state.search(state);
    const place = viewer.columns.find(index, state.at);
    const verdict = place < 0 ? "" : viewer.columns.record(index, place).verdict;
    const key = JSON.stringify([state.run, state.at, search, verdict]);
    if (drawn.sample === key) return;
    const rollout = await viewer.sample.load(source, state.run, state.at, search, verdict);
    if (!places || current().at !== state.at || current().run !== state.run) return;
    drawn.sample = key;
    viewer.sample.render(places.sample, source, current(), index, rollout);
    places.sample.scrollTop = 0;
    if (getComputedStyle(document.querySelector(".side")).display === "none") scrollTo(0, 0);
    viewer.hits.show(places.sample, rollout.matches);
    say(`${rollout.problem_id}, sample ${rollout.sample_index}, ${words(rollout.verdict)}`);
    // The neighbours are read ahead, so that j and k show them at once.
    for (const row of [1, -1].map((direction) => viewer.list.neighbour(state, direction))) {
      if (row) viewer.sample.load(source, state.run, row.id, search, row.verdict).catch(() => null);
    }
  }

  function step(direction) {
    const state = current();
    if (state.view !== "rollouts") return;
    const row = viewer.list.neighbour(state, direction);
    if (row) viewer.state.go({ at: row.id, from: "" }, { replace: Boolean(state.at) });
    else say(direction > 0 ? "the last rollout" : "the first rollout");
  }

  async function stepInGroup(direction) {
    const state = current();
    if (state.view !== "rollouts" || !state.at) return;
    const index = await source.index(state.run);
    const place = viewer.columns.find(index, state.at);
    const group = viewer.columns.group(index, place);
    const other = group[group.indexOf(place) + direction];
    if (other !== undefined) viewer.state.go({ at: viewer.columns.record(index, other).id, from: "" }, { replace: true });
  }

  async function search() {
    if (current().view !== "rollouts") viewer.state.go({ view: "rollouts" });
    if (current().at && matchMedia("(max-width: 899px)").matches) viewer.state.go({ at: "" });
    await render();
    const field = document.getElementById("filter-text") ?? document.getElementById("filter-problem");
    field?.focus();
    field?.select();
  }

  // What is new in the runs comes by itself: the page asks for it, and draws anew what has changed.
  function follow() {
    let known = null;
    const look = async () => {
      if (document.hidden) return;
      const pulse = await source.pulse().catch(() => null);
      const changed = Object.keys(pulse ?? {}).filter((run) => known && known[run] !== pulse[run]);
      known = pulse ?? known;
      if (!changed.length) return;
      runs = await source.runs();
      changed.forEach((run) => source.forget(run));
      const focused = document.activeElement?.id;
      const top = scrollY;
      await render();
      if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
      scrollTo(0, top);
      say(changed.map((run) => `${run}: ${runs.find(({ key }) => key === run)?.state}`).join("; "));
    };
    const again = () => setTimeout(() => look().catch(alarm).finally(again), 1000 * SECONDS_BETWEEN_LOOKS);
    again();
  }

  const help = () => document.getElementById("keys").showModal();
  document.getElementById("help").addEventListener("click", help);
  // The address is the state, so the skip link must not go through it.
  document.getElementById("skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));

  // Both are wanted for a list: they are asked for at once.
  const opened = viewer.state.read();
  if (opened.run && !["overview", "curves"].includes(opened.view)) source.index(opened.run).catch(() => null);
  try {
    runs = await source.runs();
  } catch (error) {
    alarm(error);
    return;
  }
  viewer.keys.listen({
    next: () => step(1),
    previous: () => step(-1),
    nextInGroup: () => stepInGroup(1),
    previousInGroup: () => stepInGroup(-1),
    nextPage: () => viewer.list.turn(1),
    previousPage: () => viewer.list.turn(-1),
    search,
    help,
    overview: () => viewer.state.go({ view: "overview" }),
    curves: () => viewer.state.go({ view: "curves" }),
    rollouts: () => viewer.state.go({ view: "rollouts" }),
    problems: () => viewer.state.go({ view: "problems" }),
    compare: () => document.getElementById("pin")?.click(),
    back: () => current().view === "rollouts" && viewer.state.go({ at: "" }),
  });
  addEventListener("hashchange", render);
  // Only training runs have an overview: a page of others opens on what they have.
  if (!location.hash && !runs.some(({ kind }) => kind === "training")) viewer.state.go({ view: runs.some((run) => run.charts.length || run.tables.length) ? "curves" : "rollouts" }, { replace: true });
  await render();
  if (source.pulse) follow();
})();
