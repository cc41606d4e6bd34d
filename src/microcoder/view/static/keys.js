"use strict";
// The keyboard: single letters and arrows, never while somebody types or chooses.

viewer.keys = (() => {
  // pages: key -> name of the page that it opens. actions: by name.
  function listen(pages, actions) {
    document.addEventListener("keydown", (event) => {
      const target = event.target;
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (target.matches("input, select, textarea")) {
        if (event.key === "Escape") target.blur();
        return;
      }
      const inList = Boolean(target.closest(".rows"));
      const inText = target.matches("pre, .prose, .scroll, summary");
      const names = {
        j: "next",
        k: "previous",
        ArrowDown: inList ? "next" : null,
        ArrowUp: inList ? "previous" : null,
        ArrowRight: inText ? null : "nextInGroup",
        ArrowLeft: inText ? null : "previousInGroup",
        "]": "nextPage",
        "[": "previousPage",
        "/": "search",
        ...pages,
        g: "group",
        x: "compare",
        Escape: "back",
        "?": "help",
      };
      const name = names[event.key];
      if (name && actions[name]) {
        event.preventDefault();
        actions[name]();
      }
    });
  }

  return { listen };
})();
