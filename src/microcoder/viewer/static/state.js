"use strict";
// The whole state is the part of the address after #, so that every link can be shared and "back" works.

viewer.state = (() => {
  const FILTERS = ["split", "step", "problem", "tier", "verdict", "truncated", "masked", "order"];

  function read() {
    const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    state.view = state.view === "rollouts" ? "rollouts" : "curves";
    return state;
  }

  function link(state) {
    const kept = Object.entries(state).filter(([, value]) => value !== "" && value !== null && value !== undefined);
    return `#${new URLSearchParams(kept)}`;
  }

  // Replacing leaves no entry to go back to: for steps through a list and for typing.
  function go(changes, { replace = false } = {}) {
    const target = link({ ...read(), ...changes });
    if (target === location.hash) return;
    if (replace) location.replace(target);
    else location.hash = target;
  }

  // What a list of rollouts is asked for.
  function query(state) {
    return Object.fromEntries(FILTERS.filter((name) => state[name]).map((name) => [name, state[name]]));
  }

  return { FILTERS, read, link, go, query };
})();
