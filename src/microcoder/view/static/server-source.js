"use strict";
// Data from the local server: columns once, one rollout at a time, searches and what is new.

viewer.serverSource = (() => {
  const indexes = new Map();

  async function get(path, words = {}, options = {}) {
    const response = await fetch(`api/${path}?${new URLSearchParams(words)}`, options).catch(() => null);
    if (!response) throw new Error("The viewer's server does not answer; is `microcoder view` still running?");
    if (!response.ok) throw new Error((await response.json()).error);
    return response;
  }

  const ask = async (path, words) => (await get(path, words)).json();

  function index(run) {
    if (!indexes.has(run)) {
      indexes.set(run, get("index", { run }).then(async (response) => viewer.columns.decode(await response.arrayBuffer())));
      indexes.get(run).catch(() => indexes.delete(run));
    }
    return indexes.get(run);
  }

  // Which rollouts hold a text, as bits in the order of the index: of the one that is here.
  async function search(run, words) {
    for (let tries = 0; tries < 3; tries++) {
      const [known, found] = await Promise.all([index(run), ask("search", { run, ...words })]);
      if (found.version === known.version) return Uint8Array.from(atob(found.bits), (letter) => letter.charCodeAt(0));
      indexes.delete(run);
    }
    throw new Error("The run grows faster than it is searched; try again.");
  }

  // Kept in the run's folder; gives the notes of the run.
  async function note(run, id, text) {
    const body = JSON.stringify({ run, id, text });
    return (await get("note", {}, { method: "POST", headers: { "Content-Type": "application/json" }, body })).json();
  }

  return {
    note,
    runs: () => ask("runs"),
    overview: (run) => ask("overview", { run }),
    replay: (run) => ask("replay", { run }),
    pulse: () => ask("pulse"),
    forget: (run) => indexes.delete(run),
    index,
    search,
    rollout: (run, id, words) => ask("rollout", { run, id, ...words }),
    test: (run, problem, test) => ask("test", { run, problem, test }),
  };
})();
