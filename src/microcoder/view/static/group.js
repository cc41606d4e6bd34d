"use strict";
// A group side by side: the samples of one problem at one step, with what differs in their programs, and how diverse
// the group is.

viewer.group = (() => {
  const { make, replace, shown, words, count, figure, choice } = viewer.page;
  const MOST_AT_FIRST = 24;
  const WORDS_A_GRAM = 4;

  async function render(main, { source, runs, state, isWanted }) {
    const index = await source.index(state.run);
    const at = viewer.columns.find(index, state.at);
    if (at < 0) throw new Error(`at=${state.at ?? ""} names no rollout of this run; open a group from one of its rollouts`);
    const members = viewer.columns.group(index, at).map((place) => viewer.columns.record(index, place));
    const listed = state.all === "yes" ? members : members.slice(0, MOST_AT_FIRST);
    const rollouts = await Promise.all(listed.map((row) => viewer.sample.load(source, state.run, row.id, null, row.verdict)));
    if (!isWanted() || viewer.state.read().at !== state.at) return;
    const base = rollouts.find((row) => row.id === state.base) ?? rollouts.find((row) => row.verdict === "accepted") ?? rollouts.find((row) => row.program) ?? rollouts[0];
    const places = viewer.columns.mixed(index, members[0].split);
    replace(
      main,
      make("h2", { id: "sample-title" }, shown(members[0].problem_id)),
      make(
        "div",
        { class: "bar-of-tools" },
        make("a", { href: viewer.state.link({ ...state, view: "rollouts" }), class: "back-to" }, "‹ Rollout"),
        make("span", { class: "soft" }, `${viewer.filters.SPLITS[members[0].split]}, step ${members[0].step}`),
        choice("base", "Differences from ", rollouts.map((row) => [row.id, `#${row.sample_index ?? "?"} ${words(row.verdict)}`]), base.id, (id) => viewer.state.go({ base: id }, { replace: true })),
        neighbours(index, places, at, state),
      ),
      diversity(rollouts),
      make("div", { class: "columns" }, pack(rollouts, base).map((alike) => column(alike, base, state))),
      members.length > listed.length ? make("button", { type: "button", click: () => viewer.state.go({ all: "yes" }, { replace: true }) }, `Show ${count(members.length - listed.length)} more samples`) : null,
    );
  }

  // The groups before and after this one in which some samples pass and some do not.
  function neighbours(index, places, at, state) {
    const order = (entry) => entry.step * 2 ** 26 + entry.places[0];
    const here = order({ step: index.columns.step[at], places: viewer.columns.group(index, at) });
    const link = (entry, text, id) => (entry ? make("a", { id, href: viewer.state.link({ ...state, base: "", at: viewer.columns.record(index, entry.places[0]).id }) }, text) : null);
    return make("span", { class: "pager" }, link(places.findLast((entry) => order(entry) < here), "‹ Mixed group before", "group-before"), " ", link(places.find((entry) => order(entry) > here), "Next mixed group ›", "group-after"));
  }

  // Samples with the same program stand in one column; the one that the others are compared with comes first.
  function pack(rollouts, base) {
    const found = new Map();
    for (const row of [base, ...rollouts.filter((row) => row !== base)]) {
      const program = row.program?.trim() ?? `none ${row.id}`;
      found.set(program, [...(found.get(program) ?? []), row]);
    }
    return [...found.values()];
  }

  // The share of distinct runs of four words in some texts; null if they have none.
  function uniqueGrams(texts) {
    const grams = texts.flatMap((text) => {
      const found = text.split(/\s+/).filter(Boolean);
      return found.slice(WORDS_A_GRAM - 1).map((_, i) => found.slice(i, i + WORDS_A_GRAM).join(" "));
    });
    return grams.length ? new Set(grams).size / grams.length : null;
  }

  function diversity(rollouts) {
    const texts = (field) => rollouts.map((row) => row[field]).filter((text) => typeof text === "string");
    const programs = texts("program");
    const distinct = [...new Set(programs.map((program) => program.trim()))];
    const pairs = distinct.flatMap((one, i) => distinct.slice(i + 1).map((other) => viewer.code.likeness(one, other)));
    const alike = pairs.length ? pairs.reduce((a, b) => a + b, 0) / pairs.length : null;
    const facts = [
      ["samples", count(rollouts.length)],
      ["passed", count(rollouts.filter(({ verdict }) => verdict === "accepted").length)],
      ["different programs", `${distinct.length} of ${programs.length}`],
      ["lines that two of them share", alike === null ? "" : figure(alike, "share")],
      ["unique 4-grams of words, responses", share(uniqueGrams(texts("completion")))],
      ["unique 4-grams of words, programs", share(uniqueGrams(programs))],
    ].filter(([, value]) => value);
    return make("dl", { class: "facts wide", id: "diversity" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  }

  const share = (value) => (value === null ? "" : figure(value, "share"));

  function column(alike, base, state) {
    const [first] = alike;
    const isBase = alike.includes(base);
    const names = alike.map((row) =>
      make("li", {}, make("a", { href: viewer.state.link({ ...state, view: "rollouts", at: row.id }) }, `#${row.sample_index ?? "?"}`), " ", make("span", { class: `verdict v-${viewer.list.kind(row.verdict)}` }, words(row.verdict)), make("span", { class: "soft" }, ` ${facts(row)}`)),
    );
    return make(
      "section",
      { class: "pane", "aria-label": `Program of sample ${alike.map((row) => row.sample_index ?? "?").join(", ")}` },
      make("ul", { class: "members" }, names),
      body(first, base, isBase),
    );
  }

  function body(row, base, isBase) {
    if (typeof row.program !== "string") return make("p", { class: "soft" }, `No program. ${words(row.extraction ?? "")}`);
    const own = make("pre", { tabindex: 0 }, viewer.code.paint(row.program));
    if (isBase || typeof base.program !== "string") return own;
    return make("div", {}, viewer.code.drawDiff(base.program, row.program, `program of sample ${row.sample_index ?? "?"} from sample ${base.sample_index ?? "?"}`), make("details", {}, make("summary", {}, "The whole program"), own));
  }

  function facts(row) {
    const reward = row.reward === null ? "unscored" : `reward ${+row.reward.toFixed(2)}`;
    const advantage = row.advantage === null || row.split !== "train" ? "" : `adv ${viewer.list.signed(row.advantage)}`;
    return [`${row.tests_passed ?? "?"}/${row.tests_total ?? "?"} tests`, reward, advantage, row.masked_why ? "masked" : ""].filter(Boolean).join(" · ");
  }

  viewer.pages.add({ name: "group", keeps: ["at", "base", "all"], render });
})();
