"use strict";
// The pages of the viewer. A page adds itself by one call; its tab stands in the navigation where the runs have
// something for it, and nowhere else.

viewer.pages = (() => {
  const SHARED = ["run", "hide", "pin"];
  const STARTS = ["overview", "curves", "rollouts"];
  const all = [];

  // name: in the address. title: of its tab; without one it is reached by links alone. key: opens it.
  // keeps: names of the state that a page has for itself. isThere: whether these runs have something to show.
  // render(main, {source, runs, state, isWanted}): draws it; isWanted says whether it still is the page that is open.
  function add(page) {
    all.push({ keeps: [], isThere: () => true, ...page });
  }

  const find = (name) => all.find((page) => page.name === name);

  // The page that is asked for, or where there is nothing for it the first that a reader begins with.
  function choose(name, runs) {
    const asked = find(name);
    return asked?.isThere(runs) ? asked : STARTS.map(find).find((page) => page.isThere(runs));
  }

  // Tabs keep what the reader had chosen on each page.
  function mark(runs, open, state) {
    const kept = (page) => Object.fromEntries([...SHARED, ...page.keeps].map((name) => [name, state[name]]));
    const tabs = all.filter((page) => page.title && page.isThere(runs)).map((page) => {
      const href = viewer.state.link({ ...kept(page), view: page.name });
      return viewer.page.make("a", { id: `tab-${page.name}`, href, "aria-current": page === open ? "page" : null }, page.title);
    });
    const focused = document.activeElement?.id;
    const place = document.getElementById("tabs");
    viewer.page.replace(place, tabs);
    if (focused?.startsWith("tab-")) document.getElementById(focused)?.focus({ preventScroll: true });
    const chosen = place.querySelector("[aria-current]");
    if (chosen) place.scrollLeft = chosen.offsetLeft - place.offsetLeft - 40;
  }

  const keys = (runs) => all.filter((page) => page.key && page.isThere(runs)).map(({ key, name }) => [key, name]);

  return { add, choose, mark, keys };
})();
