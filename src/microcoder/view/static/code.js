"use strict";
// Colours of source text by highlight.js, and what differs between two texts by jsdiff.

viewer.code = (() => {
  const { make, shown } = viewer.page;
  const LONGEST = 60_000;
  const MOST_MILLISECONDS = 1500;
  const MOST_LINES_BY_WORD = 400;
  // The judge's languages; a program that does not look like the others is Python.
  const COMPILED = ["cpp", "java", "javascript", "rust", "go", "csharp", "kotlin"];
  const LOOKS_COMPILED = /^\s*(#include|using |package |import java|fn |func |fun |public |const |let |function )/m;

  function paint(text, language = "") {
    const source = shown(text);
    if (source.length > LONGEST) return [source];
    if (!language && LOOKS_COMPILED.test(source)) return copied(hljs.highlightAuto(source, COMPILED).value);
    const name = language || "python";
    if (!hljs.getLanguage(name)) return [source];
    return copied(hljs.highlight(source, { language: name, ignoreIllegals: true }).value);
  }

  // Markup is read by a parser that runs nothing; texts and the classes of spans alone are taken over.
  function copied(markup) {
    const parsed = new DOMParser().parseFromString(`<pre>\n${markup}</pre>`, "text/html");
    const take = (node) => (node.nodeType === Node.TEXT_NODE ? node.data : make("span", { class: node.className }, [...node.childNodes].map(take)));
    return [...parsed.querySelector("pre").childNodes].map(take);
  }

  const lines = (text) => text.replace(/\n$/, "").split("\n");

  // Rows of a diff: sign and pieces of a line; of lines that were replaced one by one, with the words that differ.
  function diff(before, after) {
    const [a, b] = [before, after].map((text) => `${shown(text).replace(/\n$/, "")}\n`);
    const whole = [{ removed: true, value: a }, { added: true, value: b }];
    const changes = Diff.diffLines(a, b, { timeout: MOST_MILLISECONDS }) ?? whole;
    const rows = [];
    changes.forEach((change, i) => {
      const next = changes[i + 1];
      if (change.added && changes[i - 1]?.removed) return;
      if (change.removed && next?.added) rows.push(...replaced(lines(change.value), lines(next.value)));
      else rows.push(...lines(change.value).map((line) => [change.added ? "+" : change.removed ? "−" : " ", [line]]));
    });
    return rows;
  }

  function replaced(old, now) {
    if (old.length !== now.length || old.length > MOST_LINES_BY_WORD) {
      return [...old.map((line) => ["−", [line]]), ...now.map((line) => ["+", [line]])];
    }
    const pairs = old.map((line, i) => Diff.diffWordsWithSpace(line, now[i], { timeout: MOST_MILLISECONDS }) ?? [{ removed: true, value: line }, { added: true, value: now[i] }]);
    const side = (parts, left, kept) => parts.filter((part) => !part[left]).map((part) => (part[kept] ? make("b", {}, part.value) : part.value));
    return [...pairs.map((parts) => ["−", side(parts, "added", "removed")]), ...pairs.map((parts) => ["+", side(parts, "removed", "added")])];
  }

  function drawDiff(before, after, name) {
    const rows = diff(before, after);
    if (rows.every(([sign]) => sign === " ")) return make("p", { class: "soft" }, "The same text.");
    const kinds = { "−": "del", "+": "ins" };
    const drawn = rows.map(([sign, parts]) => (kinds[sign] ? make(kinds[sign], {}, `${sign} `, parts, "\n") : `  ${parts[0]}\n`));
    return make("pre", { class: "diff", tabindex: 0, role: "region", "aria-label": `Differences of the ${name}` }, drawn);
  }

  // How alike two texts are: the share of their lines that a diff leaves alone.
  function likeness(one, other) {
    const changes = Diff.diffLines(`${one}\n`, `${other}\n`, { timeout: MOST_MILLISECONDS }) ?? [];
    const same = changes.reduce((sum, change) => sum + (change.added || change.removed ? 0 : change.count), 0);
    return (2 * same) / (lines(one).length + lines(other).length);
  }

  return { paint, drawDiff, likeness };
})();
