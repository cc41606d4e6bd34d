"use strict";
// The state decides what is shown; every change goes through the address.

viewer.main = (() => {
  const { say, alarm } = viewer.page;
  const source = viewer.bundleSource.isHere() ? viewer.bundleSource : viewer.serverSource;
  const main = document.getElementById("main");
  const SECONDS_BETWEEN_LOOKS = 2;
  let runs = [];

  function current() {
    const state = viewer.state.read();
    if (!runs.some((run) => run.key === state.run)) state.run = runs[0].key;
    state.view = viewer.pages.choose(state.view, runs).name;
    return state;
  }

  async function render() {
    const state = current();
    const page = viewer.pages.choose(state.view, runs);
    viewer.pages.mark(runs, page, viewer.state.read());
    document.body.dataset.view = page.name;
    document.body.classList.toggle("has-sample", page.name === "rollouts" && Boolean(state.at));
    document.title = `${state.at || page.title} – MicroCoder`;
    alarm(null);
    try {
      await page.render(main, { source, runs, state, isWanted: () => current().view === page.name });
    } catch (error) {
      alarm(error);
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
    const folded = field?.closest("details");
    if (folded) folded.open = true;
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
      viewer.notes.know(runs, source.note);
      changed.forEach((run) => source.forget(run));
      const focused = document.activeElement;
      const at = focused?.selectionStart;
      const top = scrollY;
      await render();
      if (focused?.id && document.activeElement?.id !== focused.id) {
        const field = document.getElementById(focused.id);
        field?.focus({ preventScroll: true });
        if (Number.isInteger(at)) field?.setSelectionRange?.(at, at);
      }
      scrollTo(0, top);
      say(changed.map((run) => `${run}: ${runs.find(({ key }) => key === run)?.state}`).join("; "));
    };
    const again = () => setTimeout(() => look().catch(alarm).finally(again), 1000 * SECONDS_BETWEEN_LOOKS);
    again();
  }

  const help = () => document.getElementById("keys").showModal();

  // A group is opened from a rollout that is open, and closed the same way.
  function group() {
    const state = current();
    if (state.at && ["rollouts", "group"].includes(state.view)) viewer.state.go({ view: state.view === "group" ? "rollouts" : "group" });
  }

  function back() {
    const { view } = current();
    if (view === "rollouts") viewer.state.go({ at: "" });
    else if (view === "group") viewer.state.go({ view: "rollouts" });
  }

  async function start() {
    document.getElementById("help").addEventListener("click", help);
    // The address is the state, so the skip link must not go through it.
    document.getElementById("skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));
    // Both are wanted for a list: they are asked for at once.
    const opened = viewer.state.read();
    if (opened.run && !["overview", "curves", "runs", "replay"].includes(opened.view)) source.index(opened.run).catch(() => null);
    try {
      runs = await source.runs();
      viewer.notes.know(runs, source.note ?? null);
    } catch (error) {
      alarm(error);
      return;
    }
    const open = Object.fromEntries(viewer.pages.keys(runs).map(([, name]) => [name, () => viewer.state.go({ view: name })]));
    viewer.keys.listen(Object.fromEntries(viewer.pages.keys(runs)), {
      ...open,
      next: () => step(1),
      previous: () => step(-1),
      nextInGroup: () => stepInGroup(1),
      previousInGroup: () => stepInGroup(-1),
      nextPage: () => viewer.list.turn(1),
      previousPage: () => viewer.list.turn(-1),
      search,
      help,
      group,
      compare: () => document.getElementById("pin")?.click(),
      back,
    });
    addEventListener("hashchange", render);
    // Canvases do not follow the theme by themselves.
    const repaint = () => {
      viewer.chart.forget();
      if (document.querySelector(".plot")) render();
    };
    document.addEventListener("themed", repaint);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    await render();
    if (source.pulse) follow();
  }

  return { current, start };
})();

viewer.main.start();
