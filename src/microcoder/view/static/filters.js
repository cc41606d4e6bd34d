"use strict";
// The form that says which rollouts are listed, folded below the list. It is made once a run; the state fills it.

viewer.filters = (() => {
  const { make, shown, words, count, choice } = viewer.page;
  const TYPING_PAUSE = 40;
  const SPLITS = { train: "training", heldout: "held out", evaluation: "evaluation", judged: "judged", corpus: "corpus" };
  const ORDERS = { "": "most interesting first", first: "first steps first", last: "last steps first", longest: "longest first", slowest: "slowest first", advantage: "largest advantage first" };
  const FIELDS = { "": "all texts", prompt: "prompts", response: "responses", program: "programs", errors: "errors" };
  const ONLY = { flipped: "problem flipped", disagree: "judges disagree", slowest: "slowest 1 %", longest: "longest 1 %" };
  const SEARCH_PAUSE = 150;
  const YES_NO = { "": "all", yes: "yes", no: "no" };
  let waiting = 0;

  function set(name, value, pause = 0) {
    clearTimeout(waiting);
    const apply = () => viewer.state.go({ [name]: value, from: "", at: "" }, { replace: true });
    if (pause) waiting = setTimeout(apply, pause);
    else apply();
  }

  function chooser(name, label, options) {
    return choice(`filter-${name}`, label, Object.entries(options), null, (value) => set(name, value), null);
  }

  function typed(name, label, hint, pause = TYPING_PAUSE) {
    const input = (event) => set(name, event.target.value, pause);
    return make("label", {}, label, make("input", { id: `filter-${name}`, type: "search", placeholder: hint, autocomplete: "off", spellcheck: "false", input }));
  }

  function counted(counts, name) {
    const all = Object.entries(counts).sort(([, a], [, b]) => b - a);
    return Object.fromEntries([["", "all"], ...all.map(([word, number]) => [word, `${name(word)} (${count(number)})`])]);
  }

  function searchFields() {
    const box = make("input", { type: "checkbox", id: "filter-regex", change: (event) => set("regex", event.target.checked ? "yes" : "") });
    const text = typed("text", "Search", "words in texts  ( / )", SEARCH_PAUSE);
    text.classList.add("wide");
    return [text, chooser("field", "In", FIELDS), make("label", { class: "choice" }, box, "Regular expression")];
  }

  function build(runs, state, facets, canSearch) {
    const verdicts = counted(facets.verdict, words);
    const failed = facets.num_rollouts - (facets.verdict.accepted ?? 0);
    const ordered = { "": verdicts[""], "!accepted": `not accepted (${count(failed)})`, ...verdicts };
    const numMasked = facets.marked.masked;
    const only = Object.fromEntries(Object.entries(ONLY).filter(([name]) => facets.marked[name]).map(([name, text]) => [name, `${text} (${count(facets.marked[name])})`]));
    const [first, last] = facets.steps ?? [0, 0];
    const runChoice = choice("filter-run", "Run", runs.map((run) => [run.key, shown(run.name)]), null, (run) => reset({ run }), null);
    const form = make(
      "form",
      { class: "filters", role: "search", "aria-label": "Filter rollouts", submit: (event) => event.preventDefault() },
      runs.length > 1 ? runChoice : null,
      canSearch ? searchFields() : make("p", { class: "soft small" }, "Texts of a bundle cannot be searched; `microcoder view` on the run can."),
      typed("problem", "Problem", "part of its id"),
      chooser("verdict", "Verdict", ordered),
      first === last ? null : typed("step", "Step", `${first}-${last}`),
      Object.keys(facets.split).length > 1 ? chooser("split", "Samples", counted(facets.split, (word) => SPLITS[word] ?? shown(word))) : null,
      Object.keys(facets.tier).length > 1 ? chooser("tier", "Tier", counted(facets.tier, (word) => shown(word) || "none")) : null,
      facets.num_truncated ? chooser("truncated", "Truncated", { ...YES_NO, yes: `yes (${count(facets.num_truncated)})` }) : null,
      numMasked ? chooser("masked", "Masked", { ...YES_NO, yes: `yes (${count(numMasked)})` }) : null,
      Object.keys(only).length ? chooser("only", "Notable", { "": "all", ...only }) : null,
      chooser("order", "Order", ORDERS),
      make("button", { type: "button", id: "filter-reset", click: () => reset() }, "Reset"),
    );
    const folded = make("details", { class: "fold", id: "filters" }, make("summary", {}, "Filters and search"), form);
    fill(folded, state);
    return folded;
  }

  function reset(changes = {}) {
    viewer.state.go({ ...Object.fromEntries(viewer.state.FILTERS.map((name) => [name, ""])), from: "", at: "", ...changes });
  }

  // What the list is narrowed by, each to be taken back by a click, since the form is folded.
  function chips(state) {
    const named = { split: SPLITS, only: ONLY, order: ORDERS, truncated: { yes: "truncated", no: "not truncated" }, masked: { yes: "masked", no: "not masked" } };
    const other = { verdict: (word) => words(word).replace("!", "not "), differs: (name) => `differs under ${shown(name)}` };
    const text = (name) => named[name]?.[state[name]] ?? other[name]?.(state[name]) ?? `${name} ${shown(state[name])}`;
    return viewer.state.FILTERS.filter((name) => state[name] && !["regex", "field"].includes(name)).map((name) =>
      make("button", { type: "button", class: "chip", "data-filter": name, "aria-label": `Take back: ${text(name)}`, click: () => set(name, "") }, `${text(name)} ×`),
    );
  }

  // A link may name what a run does not have: the choice is then shown as it is.
  function fill(form, state) {
    for (const name of ["run", ...viewer.state.FILTERS]) {
      const control = form.querySelector(`#filter-${name}`);
      const value = state[name] ?? "";
      if (control?.type === "checkbox") control.checked = value === "yes";
      if (!control || control.type === "checkbox" || control.value === value || control === document.activeElement) continue;
      if (control.tagName === "SELECT" && value && ![...control.options].some((option) => option.value === value)) {
        control.append(make("option", { value }, shown(value)));
      }
      control.value = value;
    }
  }

  return { build, fill, chips, set, SPLITS };
})();
