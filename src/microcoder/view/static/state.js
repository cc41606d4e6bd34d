"use strict";
// The whole state is the part of the address after #, so that every link can be shared and "back" works.

viewer.state = (() => {
  const SEARCH = ["text", "regex", "field"];
  const FILTERS = [...SEARCH, "split", "step", "problem", "tier", "verdict", "truncated", "masked", "only", "differs", "order"];

  function read() {
    return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
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

  // For what the page shows already: nothing is drawn anew.
  function note(changes) {
    history.replaceState(null, "", link({ ...read(), ...changes }));
  }

  const pick = (state, names) => Object.fromEntries(names.filter((name) => state[name]).map((name) => [name, state[name]]));

  // What a list of rollouts is asked for, and what of it is searched in texts (null: nothing is).
  const query = (state) => pick(state, FILTERS);
  const search = (state) => (state.text ? pick(state, SEARCH) : null);

  return { FILTERS, read, link, go, note, query, search };
})();
