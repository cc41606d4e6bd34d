"use strict";
// The light columns of a run, and all that follows from them: filters, orders, groups, what is worth a look, problems
// over time. From a server and from a bundle alike; `Index.pack` in index.py writes what is read here.

viewer.columns = (() => {
  const TYPES = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array, float32: Float32Array };
  const WORDS = ["split", "problem_id", "tier", "verdict", "masked_why"];
  const MARKS = { flipped: 1, disagree: 2, masked: 4, slowest: 8, longest: 16 };
  const WEIGHTS = { flipped: 8, disagree: 8, masked: 4, slowest: 2, longest: 1 };
  const TAIL = 0.01; // the longest and the slowest of a run
  const PAID = 0.5; // a reward above this pays

  function decode(buffer) {
    const size = new DataView(buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
    const columns = {};
    let at = 4 + size;
    for (const [name, type] of head.columns) {
      columns[name] = new TYPES[type](buffer, at, head.num);
      at += Math.ceil(columns[name].byteLength / 8) * 8;
    }
    const index = { ...head, columns, orders: {} };
    index.entries = trace(index);
    index.marks = mark(index);
    return index;
  }

  // Each problem of a split over time: an entry a step, with what was solved and where its samples are.
  function trace({ num, columns, words }) {
    const found = new Map();
    const accepted = words.verdict.indexOf("accepted");
    const unscored = words.verdict.indexOf("sandbox_fault");
    for (let place = 0; place < num; place++) {
      const key = columns.problem_id[place] * 8 + columns.split[place];
      let history = found.get(key);
      if (!history) found.set(key, (history = []));
      let entry = history.at(-1);
      if (!entry || entry.step !== columns.step[place]) history.push((entry = { step: columns.step[place], solved: 0, scored: 0, places: [] }));
      entry.places.push(place);
      entry.solved += columns.verdict[place] === accepted;
      entry.scored += columns.verdict[place] !== unscored;
    }
    return found;
  }

  const isSolved = (entry) => entry.scored > 0 && 2 * entry.solved >= entry.scored;

  function mark({ num, columns, words, entries }) {
    const marks = new Uint8Array(num);
    const accepted = words.verdict.indexOf("accepted");
    const kept = words.masked_why.indexOf("");
    for (const history of entries.values()) {
      history.forEach((entry, i) => {
        entry.isFlipped = i > 0 && isSolved(entry) !== isSolved(history[i - 1]);
        if (entry.isFlipped) for (const place of entry.places) marks[place] |= MARKS.flipped;
      });
    }
    for (let place = 0; place < num; place++) {
      if (columns.masked_why[place] !== kept) marks[place] |= MARKS.masked;
      const reward = columns.reward[place];
      if (reward === reward && columns.split[place] === words.split.indexOf("train") && reward > PAID !== (columns.verdict[place] === accepted)) marks[place] |= MARKS.disagree;
    }
    for (const [name, column] of [["longest", columns.num_tokens], ["slowest", columns.cpu_seconds]]) {
      const known = Float32Array.from(column).filter((value) => value > 0).sort();
      const least = known[Math.floor(known.length * (1 - TAIL))];
      if (known.length > 100) for (let place = 0; place < num; place++) if (column[place] >= least) marks[place] |= MARKS[name];
    }
    return marks;
  }

  function record(index, place) {
    const row = { place };
    for (const [name, column] of Object.entries(index.columns)) row[name] = column[place];
    for (const name of WORDS) row[name] = index.words[name][row[name]];
    for (const name of ["sample_index", "num_tokens", "tests_passed", "tests_total"]) if (row[name] < 0) row[name] = null;
    for (const name of ["reward", "advantage", "cpu_seconds"]) if (Number.isNaN(row[name])) row[name] = null;
    row.is_truncated = Boolean(row.is_truncated);
    row.id = `${row.split}/${row.step}/${row.row}`;
    row.marks = Object.keys(MARKS).filter((name) => index.marks[place] & MARKS[name]);
    return row;
  }

  function find(index, id) {
    const [split, step, row] = (id ?? "").split("/");
    const { columns } = index;
    const code = index.words.split.indexOf(split);
    for (let place = 0; place < index.num; place++) {
      if (columns.row[place] === +row && columns.step[place] === +step && columns.split[place] === code) return place;
    }
    return -1;
  }

  function historyOf(index, place) {
    return index.entries.get(index.columns.problem_id[place] * 8 + index.columns.split[place]);
  }

  function group(index, place) {
    return historyOf(index, place).find((entry) => entry.step === index.columns.step[place]).places;
  }

  // Groups in which some samples pass and some do not, in the order of steps.
  function mixed(index, split = null) {
    const code = split === null ? -1 : index.words.split.indexOf(split);
    const found = [];
    for (const [key, history] of index.entries) {
      if (code >= 0 && key % 8 !== code) continue;
      found.push(...history.filter((entry) => entry.solved > 0 && entry.solved < entry.scored));
    }
    return found.sort((a, b) => a.step - b.step || a.places[0] - b.places[0]);
  }

  function stepsOf(text) {
    const found = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec((text ?? "").replace(/\s|step_?/g, ""));
    if (!found) throw new Error(`step=${text} is neither a step (12) nor a range of steps (10-20)`);
    return [+found[1], +(found[2] ?? found[1])];
  }

  // The tests of one row that a query makes. `hits`: a bit a rollout, of those that hold the text that is searched.
  function conditions(index, words, hits) {
    const { columns, marks } = index;
    const all = [];
    if (hits) all.push((place) => (hits[place >> 3] >> (place & 7)) & 1);
    for (const name of ["split", "tier"]) {
      const code = words[name] ? index.words[name].indexOf(words[name]) : null;
      if (code !== null) all.push((place) => columns[name][place] === code);
    }
    if (words.step) {
      const [first, last] = stepsOf(words.step);
      all.push((place) => columns.step[place] >= first && columns.step[place] <= last);
    }
    if (words.verdict) {
      const code = index.words.verdict.indexOf(words.verdict.replace(/^!/, ""));
      const wanted = !words.verdict.startsWith("!");
      all.push((place) => (columns.verdict[place] === code) === wanted);
    }
    if (words.truncated) all.push((place) => Boolean(columns.is_truncated[place]) === (words.truncated === "yes"));
    if (words.masked) all.push((place) => Boolean(marks[place] & MARKS.masked) === (words.masked === "yes"));
    else if (words.only) all.push((place) => marks[place] & (MARKS[words.only] ?? 0));
    if (words.problem) {
      const part = words.problem.toLowerCase();
      const codes = new Uint8Array(index.words.problem_id.length);
      index.words.problem_id.forEach((word, code) => (codes[code] = word.toLowerCase().includes(part)));
      all.push((place) => codes[columns.problem_id[place]]);
    }
    return all;
  }

  // Sorting is what costs time, so each order of all rollouts is kept.
  function ordered(index, order) {
    if (!index.orders[order]) {
      const { columns, marks } = index;
      const places = Uint32Array.from(columns.row, (_, place) => place);
      const worth = new Uint8Array(32).map((_, bits) => Object.keys(MARKS).reduce((sum, name) => sum + (bits & MARKS[name] ? WEIGHTS[name] : 0), 0));
      const score = { longest: (place) => columns.num_tokens[place], advantage: (place) => columns.advantage[place] || 0, slowest: (place) => columns.cpu_seconds[place] || 0 }[order];
      if (order === "last") places.reverse();
      if (order === "notable") {
        // Worth, then step, then place, in one number: numbers are sorted several times as fast as by a function.
        const keys = Float64Array.from(places, (place) => (1e9 - worth[marks[place]] * 1e7 - columns.step[place]) * 2 ** 23 + place).sort();
        keys.forEach((key, i) => (places[i] = key % 2 ** 23));
      }
      if (score) {
        const by = Float64Array.from(places, score);
        places.sort((a, b) => by[b] - by[a] || a - b);
      }
      index.orders[order] = places;
    }
    return index.orders[order];
  }

  function select(index, words, hits) {
    const all = conditions(index, words, hits);
    const order = words.order || "notable";
    if (!["notable", "first", "last", "longest", "slowest", "advantage"].includes(order)) throw new Error(`order=${order} is not an order; choose one from the list`);
    if (!all.length) return ordered(index, order);
    return ordered(index, order).filter((place) => all.every((test) => test(place)));
  }

  function count(index, name, places) {
    const counts = new Uint32Array(index.words[name].length);
    const column = index.columns[name];
    if (places) for (const place of places) counts[column[place]]++;
    else for (const code of column) counts[code]++;
    return Object.fromEntries(index.words[name].map((word, code) => [word, counts[code]]).filter(([, number]) => number));
  }

  // What the rollouts of a run can be filtered by.
  function facets(index) {
    const { columns, marks, num } = index;
    const marked = Object.fromEntries(Object.entries(MARKS).map(([name, bit]) => [name, marks.reduce((sum, bits) => sum + Boolean(bits & bit), 0)]));
    const sum = (column) => column.reduce((total, flag) => total + flag, 0);
    return {
      num_rollouts: num,
      steps: num ? [columns.step[0], columns.step[num - 1]] : null,
      num_truncated: sum(columns.is_truncated),
      marked,
      ...Object.fromEntries(["split", "tier", "verdict"].map((name) => [name, count(index, name)])),
    };
  }

  // Problems of a split over time, and which list each is on.
  function problems(index, split) {
    const code = index.words.split.indexOf(split);
    const found = [];
    for (const [key, history] of index.entries) {
      if (key % 8 !== code) continue;
      const first = isSolved(history[0]);
      const last = isSolved(history.at(-1));
      const flips = history.filter((entry) => entry.isFlipped).length;
      const never = history.every((entry) => !entry.solved);
      const place = history[0].places[0];
      const on = { learnt: !first && last, lost: first && !last, flipped: flips > 0, never, always: history.every((entry) => entry.solved === entry.scored) };
      found.push({ id: index.words.problem_id[Math.floor(key / 8)], tier: index.words.tier[index.columns.tier[place]], history, flips, on });
    }
    return found;
  }

  return { decode, record, find, group, historyOf, mixed, select, count, facets, problems };
})();
