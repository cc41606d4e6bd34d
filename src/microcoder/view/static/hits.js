"use strict";
// Marks the strings that a search found in a shown rollout, without touching its elements (CSS custom highlights).

viewer.hits = (() => {
  const MOST = 500;

  function show(place, matches) {
    if (!globalThis.CSS?.highlights) return;
    CSS.highlights.delete("found");
    if (!matches?.length) return;
    const wanted = matches.map((text) => viewer.page.shown(text)).filter(Boolean);
    const ranges = [...place.querySelectorAll("pre, .prose, .detail")].flatMap((block) => rangesIn(block, wanted)).slice(0, MOST);
    if (!ranges.length) return;
    CSS.highlights.set("found", new Highlight(...ranges));
    const first = ranges[0].startContainer.parentElement;
    for (let around = first.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
    first.scrollIntoView({ block: "center" });
  }

  // A string may lie over several elements, such as coloured words: they are read as one text.
  function rangesIn(block, wanted) {
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    const nodes = [];
    let text = "";
    while (walker.nextNode()) {
      nodes.push({ node: walker.currentNode, begin: text.length });
      text += walker.currentNode.data;
    }
    const at = (offset) => {
      const { node, begin } = nodes.findLast((one) => one.begin <= offset);
      return [node, Math.min(offset - begin, node.length)];
    };
    const ranges = [];
    for (const string of wanted) {
      for (let from = text.indexOf(string); from >= 0 && ranges.length < MOST; from = text.indexOf(string, from + string.length)) {
        const range = document.createRange();
        range.setStart(...at(from));
        range.setEnd(...at(from + string.length));
        ranges.push(range);
      }
    }
    return ranges;
  }

  return { show };
})();
