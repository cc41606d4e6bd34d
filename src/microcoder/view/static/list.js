"use strict";
// One page of the rollouts that the filters leave; each is a link, so it can be opened anywhere and shared.

viewer.list = (() => {
  const { make, replace, shown, words, count, figure } = viewer.page;
  const ROWS_A_PAGE = 50;
  const MARKS = { flipped: "flipped", disagree: "judges disagree", masked: "masked", slowest: "slow", longest: "long" };
  const COLUMNS = ["split", "step", "row", "problem_id", "sample_index", "tier", "verdict", "tests_passed", "tests_total", "num_tokens", "is_truncated", "reward", "advantage", "masked_why", "cpu_seconds"];
  let answer = null; // what is listed
  let asked = { base: "", number: 0 };

  // The page of the list that the state names. Null: another question has overtaken this one.
  async function load(source, state) {
    const base = JSON.stringify([state.run, viewer.state.query(state)]);
    const number = asked.number + 1;
    asked = { ...asked, number };
    const index = await source.index(state.run);
    if (answer === null || base !== asked.base || answer.index !== index) {
      const search = viewer.state.search(state);
      if (search && !source.search) throw new Error("Texts of a bundle cannot be searched; open the run with `microcoder view`.");
      const hits = search ? await source.search(state.run, search) : null;
      const known = await source.index(state.run);
      const wanted = state.differs ? await viewer.replay.narrow(source, state, known, hits) : hits;
      if (asked.number !== number) return null;
      const places = viewer.columns.select(known, state, wanted);
      answer = { index: known, places, total: places.length, verdicts: viewer.columns.count(known, "verdict", places), from: -1 };
      asked = { base, number };
    }
    return turnTo(state);
  }

  // A sample outside the filters, reached through its group: the list stays where it is.
  function turnTo(state) {
    const { index, places, total } = answer;
    const at = state.at && !state.from ? places.indexOf(viewer.columns.find(index, state.at)) : -1;
    if (state.at && !state.from && at < 0 && answer.from >= 0) return answer;
    const from = state.from ? Math.min(+state.from || 0, total) : Math.floor(Math.max(at, 0) / ROWS_A_PAGE) * ROWS_A_PAGE;
    if (from !== answer.from) {
      const rows = Array.from(places.slice(from, from + ROWS_A_PAGE), (place) => viewer.columns.record(index, place));
      answer = { ...answer, from, rows };
    }
    return answer;
  }

  function render(place, state) {
    const { rows, total, from, verdicts } = answer;
    const all = answer.index.num;
    const last = from + rows.length;
    replace(
      place,
      make("p", { class: "found", id: "found" }, make("strong", {}, count(total)), ` of ${count(all)} rollouts `, total ? make("button", { type: "button", id: "export", class: "quiet", click: () => save(state) }, "Export as CSV") : null),
      make("div", { class: "chips" }, viewer.filters.chips(state)),
      total ? bar(verdicts, total, state) : null,
      rows.length ? make("ol", { class: "rows", start: from + 1, "aria-label": "Rollouts" }, rows.map((row) => item(row, state))) : make("p", { class: "soft" }, "No matching rollouts. Clear a filter."),
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

  // The shares of verdicts; a word narrows the list to it.
  function bar(verdicts, total, state) {
    const parts = Object.entries(verdicts).sort(([a], [b]) => (b === "accepted") - (a === "accepted") || verdicts[b] - verdicts[a]);
    const picture = make("div", { class: "shares", "aria-hidden": "true" }, parts.map(([verdict, number]) => {
      const part = make("span", { class: `v-${kind(verdict)}` });
      part.style.flexGrow = number;
      return part;
    }));
    const link = (verdict) => viewer.state.link({ ...state, verdict, at: "", from: "" });
    const text = parts.map(([verdict, number]) => make("li", {}, make("a", { href: link(verdict) }, words(verdict)), ` ${share(number, total)}`));
    return make("div", {}, picture, make("ul", { class: "soft small shares-of", "aria-label": "Shares of verdicts" }, text));
  }

  function share(number, total) {
    return number && number / total < 0.0005 ? "< 0.1 %" : figure(number / total, "share");
  }

  // Colour follows the verdict, and never alone: the word stands beside it.
  function kind(verdict) {
    if (verdict === "accepted" || verdict === "kept") return "good";
    return ["sandbox_fault", "not judged yet", "given"].includes(verdict) ? "none" : verdict === "wrong_answer" ? "bad" : "odd";
  }

  function item(row, state) {
    const marks = [row.is_truncated ? "truncated" : "", ...row.marks.map((mark) => MARKS[mark])].filter(Boolean);
    const numbers = [row.tests_total === null ? "" : `${row.tests_passed}/${row.tests_total}`, row.num_tokens === null ? "" : `${count(row.num_tokens)} tokens`, row.advantage === null || row.split !== "train" ? "" : `adv ${signed(row.advantage)}`];
    return make(
      "li",
      {},
      make(
        "a",
        { href: viewer.state.link({ ...state, at: row.id, from: "" }), "data-id": row.id, "aria-current": row.id === state.at ? "true" : null },
        make("span", { class: "row-head" }, make("span", { class: `verdict v-${kind(row.verdict)}` }, words(row.verdict)), make("span", { class: "problem" }, shown(row.problem_id)), make("span", { class: "soft" }, `#${row.sample_index ?? "?"}`)),
        make("span", { class: "row-foot soft" }, row.split === "train" || row.split === "heldout" ? `step ${row.step}${row.split === "heldout" ? " held out" : ""} · ` : "", numbers.filter(Boolean).join(" · "), marks.map((mark) => make("b", { class: "mark" }, mark)), make("b", { class: "mark noted", hidden: true }, "note")),
      ),
    );
  }

  function signed(value) {
    if (Math.abs(value) < 0.005) return "0.00";
    return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  }

  function mark(place, state) {
    for (const link of place.querySelectorAll("a[data-id]")) {
      link.querySelector(".noted").hidden = !viewer.notes.of(state.run, link.dataset.id);
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

  // The rollout before or after the open one, on whatever page it is.
  function neighbour(state, direction) {
    if (!answer || !answer.total) return null;
    const { index, places, rows, total } = answer;
    const here = state.at ? places.indexOf(viewer.columns.find(index, state.at)) : -1;
    if (here < 0) return rows.at(direction > 0 ? 0 : -1) ?? null;
    const next = here + direction;
    return next < 0 || next >= total ? null : viewer.columns.record(index, places[next]);
  }

  // The filtered list as a file, made here: light columns; the texts are in the run's files.
  function save(state) {
    const { index, places } = answer;
    const cell = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const lines = Array.from(places, (place) => {
      const row = viewer.columns.record(index, place);
      return COLUMNS.map((name) => cell(`${row[name] ?? ""}`)).join(",");
    });
    const file = new Blob([[COLUMNS.join(","), ...lines, ""].join("\n")], { type: "text/csv" });
    const link = make("a", { href: URL.createObjectURL(file), download: `${state.run}-rollouts.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // Where the open rollout stands, for the reader: "12 of 340".
  function standing(state) {
    const here = answer?.places && state.at ? answer.places.indexOf(viewer.columns.find(answer.index, state.at)) : -1;
    return here < 0 ? "" : `${count(here + 1)} of ${count(answer.total)}`;
  }

  return { load, render, mark, turn, neighbour, standing, kind, signed };
})();
