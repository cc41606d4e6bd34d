// What the theme's script adds to a page: what scrolls is reached by keyboard, and a copy button is no landmark.
const mend = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) box.tabIndex = 0;
  }
  document.querySelectorAll(".md-code__nav:not([role])").forEach((nav) => nav.setAttribute("role", "none"));
};
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true, attributeFilter: ["tabindex"] });
addEventListener("resize", mend);
mend();
