"use strict";
// Elements, texts and the theme. Whatever a run holds reaches the page through textContent alone.

const viewer = {};

viewer.page = (() => {
  const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
  const INVISIBLE = /[\u0080-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

  // An element with attributes (a function is a listener) and children (texts, elements, null).
  function make(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }

  // Text with everything visible that a terminal or an editor would obey: control characters, direction overrides.
  function shown(text) {
    return String(text)
      .replace(/\r\n/g, "\n")
      .replace(CONTROLS, (mark) => String.fromCharCode(mark === "\u007f" ? 0x2421 : 0x2400 + mark.charCodeAt(0)))
      .replace(INVISIBLE, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }

  function replace(parent, ...children) {
    parent.replaceChildren(...children.flat().filter(Boolean));
  }

  function say(text) {
    document.getElementById("spoken").textContent = text;
  }

  function alarm(error) {
    const place = document.getElementById("alarm");
    place.hidden = !error;
    place.textContent = error ? shown(error.message ?? error) : "";
  }

  function count(number) {
    return number.toLocaleString("en");
  }

  function figure(value, unit) {
    if (value === null || value === undefined) return "unknown";
    if (unit === "share") return `${(100 * value).toFixed(1)} %`;
    if (unit === "seconds" && Math.abs(value) < 0.1) return `${(1000 * value).toFixed(value < 0.01 ? 1 : 0)} ms`;
    const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.01 || value === 0 ? 2 : -1;
    const text = digits < 0 ? value.toExponential(1) : value.toFixed(digits);
    return unit === "seconds" ? `${text} s` : text;
  }

  // A table that scrolls by itself, and in a narrow window has a card a row. A cell is a text, a text and its class, or
  // an element; the first of a row names it. A column is a text, or a text and what its heading holds.
  function table(label, columns, rows) {
    const titles = columns.map((column) => shown([column].flat()[0]));
    const heading = (column, i) => (Array.isArray(column) ? column[1] : make("th", { scope: "col", role: "columnheader" }, titles[i]));
    const body = (value) => (value instanceof Node ? value : shown([value].flat()[0]));
    const cell = (value, i) => make("td", { role: "cell", class: Array.isArray(value) ? value[1] : null, "data-label": titles[i] }, body(value));
    const head = make("tr", { role: "row" }, columns.map(heading));
    const lines = rows.map((row) => make("tr", { role: "row" }, row.map(cell)));
    // Roles said aloud: as cards the rows are no table to a browser.
    const grid = make("table", { role: "table", class: "cards" }, make("thead", { role: "rowgroup" }, head), make("tbody", { role: "rowgroup" }, lines));
    return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": shown(label) }, grid);
  }

  // A choice of one of several pairs of value and text; `change` is called with the value.
  function choice(id, label, options, value, change, kind = "choice") {
    const entries = options.map(([one, text]) => make("option", { value: one, selected: one === value }, text));
    return make("label", { class: kind }, label, make("select", { id, change: (event) => change(event.target.value) }, entries));
  }

  // A button that copies what `read` gives. Where a browser does not let it, the text is shown to be copied by hand.
  function copier(id, label, read) {
    const copy = async (event) => {
      const button = event.currentTarget;
      try {
        await navigator.clipboard.writeText(read());
        button.textContent = "Copied";
      } catch {
        button.textContent = "This browser lets no page copy; select the text";
      }
      setTimeout(() => (button.textContent = label), 1500);
    };
    return make("button", { type: "button", id, class: "copier", click: copy }, label);
  }

  const words = (verdict) => shown(verdict).replaceAll("_", " ");

  const THEMES = ["auto", "light", "dark"];

  function remembered() {
    try {
      return localStorage.getItem("theme") ?? "auto";
    } catch {
      return "auto"; // Pages from disk may have no storage.
    }
  }

  function wear(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    button.replaceChildren(make("span", { class: "long" }, "Theme: "), theme);
    button.onclick = () => {
      const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      try {
        localStorage.setItem("theme", next);
      } catch {
        // It holds until the page is closed.
      }
      wear(next);
      document.dispatchEvent(new Event("themed"));
    };
  }

  wear(THEMES.includes(remembered()) ? remembered() : "auto");
  return { make, replace, shown, say, alarm, count, figure, table, choice, copier, words };
})();
