"use strict";
// The state decides what is shown; every change goes through the address.

(async () => {
  const { make, replace, say, alarm, words } = viewer.page;
  const source = viewer.bundleSource.isHere() ? viewer.bundleSource : viewer.serverSource;
  const main = document.getElementById("main");
  let runs = [];
  let form = null; // the filters, with the run they are of
  let places = null; // where list and sample are drawn
  let drawn = { list: null, sample: "" };

  function current() {
    const state = viewer.state.read();
    if (!runs.some((run) => run.key === state.run)) state.run = runs[0].key;
    return state;
  }

  function mark(view) {
    for (const name of ["curves", "rollouts"]) {
      const tab = document.getElementById(`tab-${name}`);
      if (name === view) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
      const { hide, smooth, run, ...rest } = viewer.state.read();
      tab.href = viewer.state.link(name === "curves" ? { hide, smooth, run, view: name } : { ...rest, hide, smooth, run, view: name });
    }
  }

  async function render() {
    const state = current();
    mark(state.view);
    document.body.dataset.view = state.view;
    document.body.classList.toggle("has-sample", state.view === "rollouts" && Boolean(state.at));
    alarm(null);
    try {
      if (state.view === "curves") showCurves(state);
      else await showRollouts(state);
    } catch (error) {
      alarm(error);
    }
  }

  function showCurves(state) {
    places = null;
    document.title = "Curves – MicroCoder";
    viewer.curves.render(main, runs, state);
  }

  async function showRollouts(state) {
    document.title = `${state.at || "Rollouts"} – MicroCoder`;
    if (!places || form.run !== state.run) {
      const facets = await source.facets(state.run);
      if (current().run !== state.run || current().view !== "rollouts") return;
      form = { run: state.run, element: viewer.filters.build(runs, state, facets) };
      places = { list: make("div", { class: "list" }), sample: make("article", { class: "sample", "aria-label": "Sample" }) };
      drawn = { list: null, sample: "" };
      replace(main, make("div", { class: "side" }, form.element, places.list), places.sample);
    }
    viewer.filters.fill(form.element, state);
    await Promise.all([showList(state), showSample(state)]);
  }

  async function showList(state) {
    const answer = await viewer.list.load(source, state);
    if (!answer || !places) return;
    if (drawn.list !== answer || state.from) viewer.list.render(places.list, current());
    if (drawn.list !== answer) say(`${answer.total} rollouts`);
    drawn.list = answer;
    viewer.list.mark(places.list, current());
    const standing = document.getElementById("standing");
    if (standing) standing.textContent = viewer.list.standing(current());
  }

  async function showSample(state) {
    if (!state.at) {
      drawn.sample = "";
      replace(places.sample, make("p", { class: "soft hint" }, "Choose a rollout, or press j."));
      return;
    }
    const key = `${state.run} ${state.at}`;
    if (drawn.sample === key) return;
    const rollout = await viewer.sample.load(source, state.run, state.at);
    if (!places || current().at !== state.at || current().run !== state.run) return;
    drawn.sample = key;
    viewer.sample.render(places.sample, source, current(), rollout);
    places.sample.scrollTop = 0;
    if (getComputedStyle(document.querySelector(".side")).display === "none") scrollTo(0, 0);
    say(`${rollout.problem_id}, sample ${rollout.sample_index}, ${words(rollout.verdict)}`);
    prefetch(state);
  }

  // The neighbours are read ahead, so that j and k show them at once.
  async function prefetch(state) {
    for (const direction of [1, -1]) {
      const id = await viewer.list.neighbour(source, state, direction).catch(() => null);
      if (id) viewer.sample.load(source, state.run, id).catch(() => null);
    }
  }

  async function step(direction) {
    const state = current();
    if (state.view !== "rollouts") return;
    const id = await viewer.list.neighbour(source, state, direction);
    if (id) viewer.state.go({ at: id, from: "" }, { replace: Boolean(state.at) });
    else say(direction > 0 ? "the last rollout" : "the first rollout");
  }

  async function stepInGroup(direction) {
    const state = current();
    if (state.view !== "rollouts" || !state.at) return;
    const { group } = await viewer.sample.load(source, state.run, state.at);
    const other = group[group.findIndex((row) => row.id === state.at) + direction];
    if (other) viewer.state.go({ at: other.id, from: "" }, { replace: true });
  }

  async function search() {
    if (current().view !== "rollouts") viewer.state.go({ view: "rollouts" });
    if (current().at && matchMedia("(max-width: 899px)").matches) viewer.state.go({ at: "" });
    await render();
    const field = document.getElementById("filter-problem");
    field?.focus();
    field?.select();
  }

  const help = () => document.getElementById("keys").showModal();
  document.getElementById("help").addEventListener("click", help);
  // The address is the state, so the skip link must not go through it.
  document.getElementById("skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));

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
    curves: () => viewer.state.go({ view: "curves" }),
    rollouts: () => viewer.state.go({ view: "rollouts" }),
    back: () => current().view === "rollouts" && viewer.state.go({ at: "" }),
  });
  addEventListener("hashchange", render);
  // Evaluations and verdicts have no curves: a page of nothing but them opens on what they have.
  if (!location.hash && runs.every((run) => !run.charts.length && !run.tables.length)) viewer.state.go({ view: "rollouts" }, { replace: true });
  await render();
})();
