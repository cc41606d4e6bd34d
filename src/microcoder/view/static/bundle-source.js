"use strict";
// The same from a bundle's files, which come as scripts: columns once, texts in chunks. Texts cannot be searched here.

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
      script.onerror = () => reject(new Error(`data/${name}.js is not here: a report has the first texts of its rollouts; all of them: microcoder view RUN`));
      document.head.append(script);
    });
  }

  async function index(run) {
    if (!indexes.has(run)) {
      const text = atob(await load(`${run}/index`));
      const bytes = new Uint8Array(text.length);
      for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
      indexes.set(run, viewer.columns.decode(bytes.buffer));
      delivered.delete(`${run}/index`);
    }
    return indexes.get(run);
  }

  const about = (run) => runs.find(({ key }) => key === run);

  async function rollout(run, id) {
    const known = await index(run);
    const place = viewer.columns.find(known, id);
    if (place < 0) throw new Error(`id=${id} names no rollout of this run`);
    const { rows_a_chunk: size } = about(run);
    const rows = await load(`${run}/rows-${Math.floor(place / size)}`);
    return { ...rows[place % size], ...viewer.columns.record(known, place) };
  }

  async function test(run, problem, number) {
    const code = (await index(run)).words.problem_id.indexOf(problem);
    const { has_tests: hasTests, problems_a_chunk: size } = about(run);
    const chunk = hasTests && code >= 0 ? await load(`${run}/tests-${Math.floor(code / size)}`) : {};
    const asked = chunk[problem];
    if (!asked || number >= asked.tests.length) return { is_known: false, num_tests: asked?.tests.length ?? 0, why: asked?.why ?? "" };
    return { ...asked.tests[number], ...asked, num_tests: asked.tests.length, is_known: true };
  }

  return { isHere: () => runs !== null, runs: async () => runs, overview: (run) => load(`${run}/overview`), replay: (run) => load(`${run}/replay`), index, rollout, test };
})();
