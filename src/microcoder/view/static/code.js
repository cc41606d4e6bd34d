"use strict";
// Colours of source text, and what differs between two texts line by line. Words, strings, numbers and comments of
// Python and of C-like languages: enough to read by, and nothing that a hostile text could do more than look odd.

viewer.code = (() => {
  const { make, shown } = viewer.page;
  const LONGEST = 60_000;
  const MOST_CELLS = 4_000_000;
  const PYTHON = "and as assert async await break class continue def del elif else except finally for from global if import in is lambda match case nonlocal not or pass raise return try while with yield None True False self";
  const OTHERS = "auto bool break case catch char class const continue default delete do double else enum extern fn for func go if impl import int let long loop match mut namespace new nullptr package private pub public return short signed sizeof static string struct switch template this throw try typedef typename unsigned use using var vector void while true false null include define";
  const WORDS = { python: new Set(PYTHON.split(" ")), other: new Set(OTHERS.split(" ")) };
  const PIECES = {
    python: /(#[^\n]*)|((?:[rbfuRBFU]{0,2})(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(\b\d[\w.]*)|([A-Za-z_]\w*)/g,
    other: /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|^\s*#[^\n]*)|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/gm,
  };
  const KINDS = ["comment", "string", "number", "word"];

  function paint(text) {
    const source = shown(text);
    if (source.length > LONGEST) return [source];
    const language = /^\s*(#include|using |package |import java|fn |func |public )/m.test(source) ? "other" : "python";
    const parts = [];
    let end = 0;
    for (const found of source.matchAll(PIECES[language])) {
      const kind = KINDS[[1, 2, 3, 4].findIndex((group) => found[group] !== undefined)];
      if (kind === "word" && !WORDS[language].has(found[0])) continue;
      if (found.index > end) parts.push(source.slice(end, found.index));
      parts.push(make("span", { class: `code-${kind}` }, found[0]));
      end = found.index + found[0].length;
    }
    parts.push(source.slice(end));
    return parts;
  }

  // Rows of a diff: [sign, line], by the longest common subsequence between what both ends share.
  function diff(before, after) {
    const [a, b] = [before, after].map((text) => shown(text).replace(/\n$/, "").split("\n"));
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head++;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
    const same = (lines) => lines.map((line) => [" ", line]);
    const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
    const middle = x.length * y.length > MOST_CELLS ? [...x.map((line) => ["−", line]), ...y.map((line) => ["+", line])] : align(x, y);
    return [...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))];
  }

  function align(x, y) {
    const width = y.length + 1;
    const longest = new Uint32Array((x.length + 1) * width);
    for (let i = x.length - 1; i >= 0; i--) {
      for (let j = y.length - 1; j >= 0; j--) {
        const next = (i + 1) * width + j;
        longest[i * width + j] = x[i] === y[j] ? longest[next + 1] + 1 : Math.max(longest[next], longest[i * width + j + 1]);
      }
    }
    const rows = [];
    for (let i = 0, j = 0; i < x.length || j < y.length; ) {
      if (i < x.length && j < y.length && x[i] === y[j]) rows.push([" ", x[i++], j++]);
      else if (j >= y.length || (i < x.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) rows.push(["−", x[i++]]);
      else rows.push(["+", y[j++]]);
    }
    return rows;
  }

  function drawDiff(before, after, name) {
    const rows = diff(before, after);
    if (rows.every(([sign]) => sign === " ")) return make("p", { class: "soft" }, "The same text.");
    const kinds = { " ": "", "−": "del", "+": "ins" };
    return make("pre", { class: "diff", tabindex: 0, role: "region", "aria-label": `Differences of the ${name}` }, rows.map(([sign, line]) => (kinds[sign] ? make(kinds[sign], {}, `${sign} ${line}\n`) : `  ${line}\n`)));
  }

  return { paint, drawDiff };
})();
