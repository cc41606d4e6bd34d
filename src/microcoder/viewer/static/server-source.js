"use strict";
// Data from the local server: pages of rows, one rollout at a time.

viewer.serverSource = (() => {
  async function ask(path, words = {}) {
    const response = await fetch(`api/${path}?${new URLSearchParams(words)}`).catch(() => null);
    if (!response) throw new Error("The viewer's server does not answer; is `microcoder view` still running?");
    const value = await response.json();
    if (!response.ok) throw new Error(value.error);
    return value;
  }

  return {
    runs: () => ask("runs"),
    facets: (run) => ask("facets", { run }),
    rollouts: (run, words) => ask("rollouts", { run, ...words }),
    rollout: (run, id) => ask("rollout", { run, id }),
    test: (run, problem, test) => ask("test", { run, problem, test }),
    text: async (run, id, field, test) => (await ask("text", { run, id, field, test: test ?? 0 })).text,
    isWhole: true,
  };
})();
