"use strict";
// The same answers from a bundle's files: light columns are filtered here, texts come in chunks, as scripts.

viewer.bundleSource = (() => {
  const KEPT_CHUNKS = 40;
  const delivered = new Map();
  const indexes = new Map();
  let runs = null;

  viewer.deliver = (name, value) => {
    if (name === "runs") runs = value;
    else delivered.set(name, value);
  };

  function load(name) {
    if (delivered.has(name)) return Promise.resolve(delivered.get(name));
    return new Promise((resolve, reject) => {
      const script = viewer.page.make("script", { src: `data/${name}.js` });
      script.onload = () => {
        resolve(delivered.get(name));
        script.remove();
        while (delivered.size > KEPT_CHUNKS) delivered.delete(delivered.keys().next().value);
      };
      script.onerror = () => reject(new Error(`data/${name}.js is missing from the bundle`));
      document.head.append(script);
    });
  }

  async function indexOf(run) {
    if (!indexes.has(run)) indexes.set(run, await load(`${run}/index`));
    return indexes.get(run);
  }

  const WORDS = ["split", "problem_id", "tier", "verdict", "masked_why"];

  function record(index, place) {
    const row = {};
    for (const [name, column] of Object.entries(index.columns)) row[name] = column[place];
    for (const name of WORDS) row[name] = index.words[name][row[name]];
    for (const name of ["sample_index", "num_tokens", "tests_passed", "tests_total"]) if (row[name] < 0) row[name] = null;
    row.is_truncated = Boolean(row.is_truncated);
    row.id = `${row.split}/${row.step}/${row.row}`;
    return row;
  }

  function find(index, id) {
    const [split, step, row] = (id ?? "").split("/");
    const { columns } = index;
    const code = index.words.split.indexOf(split);
    for (let place = 0; place < columns.row.length; place++) {
      if (columns.row[place] === +row && columns.step[place] === +step && columns.split[place] === code) return place;
    }
    return -1;
  }

  function stepsOf(text) {
    const found = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec((text ?? "").replace(/\s|step_?/g, ""));
    if (!found) throw new Error(`step=${text} is neither a step (12) nor a range of steps (10-20)`);
    return [+found[1], +(found[2] ?? found[1])];
  }

  // The tests of one row that a query makes: the same as Index.select in index.py.
  function conditions(index, words) {
    const { columns } = index;
    const all = [];
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
    if (words.masked) {
      const not = index.words.masked_why.indexOf("");
      all.push((place) => (columns.masked_why[place] !== not) === (words.masked === "yes"));
    }
    if (words.problem) {
      const part = words.problem.toLowerCase();
      const codes = new Set();
      index.words.problem_id.forEach((word, code) => word.toLowerCase().includes(part) && codes.add(code));
      all.push((place) => codes.has(columns.problem_id[place]));
    }
    return all;
  }

  // Sorting is what costs time, so each order of all rollouts is kept.
  function ordered(index, order) {
    index.orders ??= {};
    if (!index.orders[order]) {
      const places = Uint32Array.from(index.columns.row, (_, place) => place);
      if (order === "last") places.reverse();
      const column = { longest: index.columns.num_tokens, advantage: index.columns.advantage }[order];
      if (column) {
        const by = Float64Array.from(column, (value) => value ?? 0);
        places.sort((a, b) => by[b] - by[a] || a - b);
      }
      index.orders[order] = places;
    }
    return index.orders[order];
  }

  function select(index, words) {
    const all = conditions(index, words);
    const places = [];
    for (const place of ordered(index, words.order ?? "first")) if (all.every((test) => test(place))) places.push(place);
    return places;
  }

  async function rollouts(run, words) {
    const index = await indexOf(run);
    const places = select(index, words);
    const count = +(words.count ?? 50);
    const at = words.at ? places.indexOf(find(index, words.at)) : -1;
    const first = words.from === undefined ? Math.floor(Math.max(at, 0) / count) * count : Math.min(+words.from, places.length);
    const verdicts = {};
    for (const place of places) {
      const verdict = index.words.verdict[index.columns.verdict[place]];
      verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
    }
    const rows = places.slice(first, first + count).map((place) => record(index, place));
    return { total: places.length, num_rollouts: index.columns.row.length, from: first, at: at < 0 ? null : at, verdicts, rows };
  }

  async function rollout(run, id) {
    const index = await indexOf(run);
    const place = find(index, id);
    if (place < 0) throw new Error(`id=${id} names no rollout of this run`);
    const rows = await load(`${run}/rows-${Math.floor(place / index.rows_a_chunk)}`);
    const { columns } = index;
    const group = [];
    for (let other = 0; other < columns.row.length; other++) {
      if (["step", "split", "problem_id"].every((name) => columns[name][other] === columns[name][place])) {
        group.push(record(index, other));
      }
    }
    return { ...rows[place % index.rows_a_chunk], ...record(index, place), group };
  }

  async function test(run, problem, number) {
    const index = await indexOf(run);
    const code = index.words.problem_id.indexOf(problem);
    const isKept = runs.find(({ key }) => key === run).has_tests && code >= 0;
    const chunk = isKept ? await load(`${run}/tests-${Math.floor(code / index.problems_a_chunk)}`) : {};
    const asked = chunk[problem];
    if (!asked || number >= asked.tests.length) return { is_known: false, num_tests: asked?.tests.length ?? 0 };
    return { ...asked.tests[number], ...asked, num_tests: asked.tests.length, is_known: true };
  }

  return {
    isHere: () => runs !== null,
    runs: async () => runs,
    facets: async (run) => runs.find(({ key }) => key === run)?.facets ?? {},
    rollouts,
    rollout,
    test,
    isWhole: false,
  };
})();
