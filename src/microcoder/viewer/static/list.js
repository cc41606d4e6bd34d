"use strict";
// One page of the rollouts that the filters leave; each is a link, so it can be opened anywhere and shared.

viewer.list = (() => {
  const { make, replace, shown, words, count, figure } = viewer.page;
  const ROWS_A_PAGE = 50;
  let answer = null; // what is listed
  let asked = { base: "", at: "", number: 0 };

  // Ask for the page that the state names, unless it is here. Null: another question has overtaken this one.
  async function load(source, state) {
    const query = viewer.state.query(state);
    const base = JSON.stringify([state.run, query]);
    const isSame = answer !== null && base === asked.base;
    if (isSame && holds(state)) return answer;
    const number = asked.number + 1;
    asked = { base, at: state.at, number };
    const place = state.from ? { from: state.from } : state.at ? { at: state.at } : {};
    const found = await source.rollouts(state.run, { ...query, ...place, count: ROWS_A_PAGE });
    if (asked.number !== number) return null;
    // A sample outside the filters, reached through its group: the list stays where it is.
    if (!(isSame && state.at && !state.from && found.at === null)) answer = found;
    return answer;
  }

  function holds(state) {
    if (state.from) return answer.from === +state.from;
    if (!state.at) return answer.from === 0;
    return asked.at === state.at || answer.rows.some((row) => row.id === state.at);
  }

  function forget() {
    asked = { base: "", at: "", number: asked.number + 1 };
    answer = null;
  }

  function render(place, state) {
    const { rows, total, num_rollouts: all, from, verdicts } = answer;
    const last = from + rows.length;
    replace(
      place,
      make("p", { class: "found", id: "found" }, make("strong", {}, count(total)), ` of ${count(all)} rollouts`),
      total ? bar(verdicts, total) : null,
      rows.length ? make("ol", { class: "rows", start: from + 1, "aria-label": "Rollouts" }, rows.map((row) => item(row, state))) : make("p", { class: "soft" }, "No rollout is like that. Widen the filters."),
      total > ROWS_A_PAGE
        ? make(
            "div",
            { class: "pages" },
            make("button", { type: "button", id: "page-back", disabled: from === 0, click: () => turn(-1) }, "‹ Previous"),
            make("span", { class: "soft" }, `${count(from + 1)}–${count(last)}`),
            make("button", { type: "button", id: "page-on", disabled: last >= total, click: () => turn(1) }, "Next ›"),
          )
        : null,
    );
  }

  function bar(verdicts, total) {
    const parts = Object.entries(verdicts).sort(([a], [b]) => (b === "accepted") - (a === "accepted") || verdicts[b] - verdicts[a]);
    const picture = make("div", { class: "shares", "aria-hidden": "true" }, parts.map(([verdict, number]) => {
      const part = make("span", { class: `v-${kind(verdict)}` });
      part.style.flexGrow = number;
      return part;
    }));
    const text = parts.map(([verdict, number]) => `${words(verdict)} ${share(number, total)}`).join(" · ");
    return make("div", {}, picture, make("p", { class: "soft small" }, text));
  }

  function share(number, total) {
    return number && number / total < 0.0005 ? "< 0.1 %" : figure(number / total, "share");
  }

  // Colour follows the verdict, and never alone: the word stands beside it.
  function kind(verdict) {
    if (verdict === "accepted") return "good";
    return verdict === "sandbox_fault" || verdict === "not judged yet" ? "none" : verdict === "wrong_answer" ? "bad" : "odd";
  }

  function item(row, state) {
    const marks = [row.is_truncated ? "truncated" : "", row.masked_why ? "masked" : ""].filter(Boolean);
    const numbers = [row.tests_total === null ? "" : `${row.tests_passed}/${row.tests_total}`, row.num_tokens === null ? "" : `${count(row.num_tokens)} tokens`, row.advantage === null || row.split !== "train" ? "" : `adv ${signed(row.advantage)}`];
    return make(
      "li",
      {},
      make(
        "a",
        { href: viewer.state.link({ ...state, at: row.id, from: "" }), "data-id": row.id, "aria-current": row.id === state.at ? "true" : null },
        make("span", { class: "row-head" }, make("span", { class: `verdict v-${kind(row.verdict)}` }, words(row.verdict)), make("span", { class: "problem" }, shown(row.problem_id)), make("span", { class: "soft" }, `#${row.sample_index ?? "?"}`)),
        make("span", { class: "row-foot soft" }, row.split === "train" || row.split === "heldout" ? `step ${row.step}${row.split === "heldout" ? " held out" : ""} · ` : "", numbers.filter(Boolean).join(" · "), marks.map((mark) => make("b", { class: "mark" }, mark))),
      ),
    );
  }

  function signed(value) {
    if (Math.abs(value) < 0.005) return "0.00";
    return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  }

  function mark(place, state) {
    for (const link of place.querySelectorAll("a[data-id]")) {
      const isCurrent = link.dataset.id === state.at;
      if (!isCurrent) link.removeAttribute("aria-current");
      else {
        link.setAttribute("aria-current", "true");
        link.scrollIntoView({ block: "nearest" });
        if (place.contains(document.activeElement)) link.focus({ preventScroll: true });
      }
    }
  }

  function turn(direction) {
    if (!answer) return;
    const from = answer.from + direction * ROWS_A_PAGE;
    if (from >= 0 && from < answer.total) viewer.state.go({ from, at: "" });
  }

  // The rollout before or after the open one; the next page is asked for at the end of this one.
  async function neighbour(source, state, direction) {
    if (!answer || !answer.rows.length) return null;
    const here = answer.rows.findIndex((row) => row.id === state.at);
    if (here < 0) return answer.rows[direction > 0 ? 0 : answer.rows.length - 1].id;
    if (answer.rows[here + direction]) return answer.rows[here + direction].id;
    const from = direction > 0 ? answer.from + ROWS_A_PAGE : answer.from - ROWS_A_PAGE;
    if (from < 0 || from >= answer.total) return null;
    const page = await source.rollouts(state.run, { ...viewer.state.query(state), count: ROWS_A_PAGE, from });
    return page.rows.at(direction > 0 ? 0 : -1)?.id ?? null;
  }

  // Where the open rollout stands, for the reader: "12 of 340".
  function standing(state) {
    const here = answer ? answer.rows.findIndex((row) => row.id === state.at) : -1;
    return here < 0 ? "" : `${count(answer.from + here + 1)} of ${count(answer.total)}`;
  }

  return { load, forget, render, mark, turn, neighbour, standing, kind, signed };
})();
