"use strict";
// What happened in a training run: headline, a few sentences, comparisons, warnings and examples. The page opens here.

viewer.overview = (() => {
  const { make, replace, shown, words, count, table } = viewer.page;

  async function render(main, source, runs, state, isWanted) {
    const trained = runs.filter(({ kind }) => kind === "training");
    if (!trained.length) return replace(main, make("p", { class: "soft hint" }, "No training run is open; only these have an overview."));
    const run = trained.find(({ key }) => key === state.run) ?? trained[0];
    const told = await source.overview(run.key);
    const examples = await Promise.all(told.examples.map((one) => example(source, run.key, one)));
    if (!isWanted()) return;
    const choose = (event) => viewer.state.go({ run: event.target.value }, { replace: true });
    const options = trained.map(({ key, name }) => make("option", { value: key, selected: key === run.key }, shown(name)));
    const chart = viewer.curves.draw(runs, new Set(), { width: Math.min(640, main.clientWidth - 32), smoothing: 1, only: "accuracy" });
    replace(
      main,
      trained.length > 1 ? make("label", { class: "choice" }, "Run ", make("select", { id: "overview-run", change: choose }, options)) : null,
      make("h2", {}, shown(told.title), make("b", { class: "badge" }, told.state)),
      make("p", { class: "soft" }, shown(told.about)),
      headline(told, run.key),
      ...[...told.notices, ...run.notices].map((text) => make("p", { class: "notice" }, shown(text))),
      topics(told),
      ...told.tables.map(section),
      make("h3", {}, "Curves"),
      make("div", {}, chart),
      make("p", {}, make("a", { href: viewer.state.link({ view: "curves" }) }, "All curves")),
      examples.length ? make("h3", {}, "Examples") : null,
      examples.length ? make("p", { class: "soft" }, "Hand-picked illustrations, not a sample.") : null,
      ...examples,
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

  function topics({ topics, next }) {
    const commands = next.map(([command, what], i) => [i ? "; " : "", make("code", {}, shown(command)), ` to ${what}`]).flat();
    const rows = [...topics.map(([name, text]) => [name, shown(text)]), ["next", commands]];
    return make("dl", { class: "facts", id: "topics" }, rows.flatMap(([name, text]) => [make("dt", {}, shown(name)), make("dd", {}, text)]));
  }

  function section({ id, title, text, columns, rows, note }) {
    return make("section", { id, class: "report" }, make("h3", {}, title), text ? make("p", {}, make("strong", {}, shown(text))) : null, table(title, columns, rows), note ? make("p", { class: "soft small" }, shown(note)) : null);
  }

  async function example(source, run, { title, why, rollouts }) {
    const read = await Promise.all(rollouts.map(({ id }) => viewer.sample.load(source, run, id, null, "")));
    return make(
      "section",
      { class: "example" },
      make("h4", {}, shown(title)),
      make("p", { class: "soft" }, shown(why)),
      text("Prompt", read[0].prompt, true),
      make("div", { class: "pair" }, read.map((rollout, i) => card(run, rollouts[i].label, rollout))),
    );
  }

  function card(run, label, rollout) {
    const facts = [`${rollout.tests_passed ?? 0} of ${rollout.tests_total ?? "?"} tests`, `${rollout.num_tokens} tokens${rollout.is_truncated ? ", truncated" : ""}`, rollout.reward === null ? "unscored" : `reward ${+rollout.reward.toFixed(3)}`, rollout.split === "train" ? `advantage ${viewer.list.signed(rollout.advantage)}` : ""];
    return make(
      "section",
      { class: "pane", "aria-label": `${label}: ${shown(rollout.problem_id)}` },
      make("p", {}, make("strong", {}, label), " ", make("span", { class: `verdict v-${viewer.list.kind(rollout.verdict)}` }, words(rollout.verdict)), make("span", { class: "soft" }, ` ${facts.filter(Boolean).join(" · ")} `), make("a", { href: viewer.state.link({ view: "rollouts", run, at: rollout.id }) }, "its tests and group")),
      text("Completion", rollout.completion, true),
      rollout.program ? text(`Extracted program (${words(rollout.extraction ?? "")})`, rollout.program, false) : make("p", { class: "soft" }, `No program: ${words(rollout.extraction ?? "")}`),
    );
  }

  function text(title, body, open) {
    return make("details", { class: "text", open }, make("summary", {}, title, make("span", { class: "soft" }, ` ${count(body?.length ?? 0)} characters`)), make("pre", { tabindex: 0 }, shown(body ?? "")));
  }

  return { render };
})();
