"use strict";
// Statements as they are meant: the Markdown that problem sites write, and TeX as far as plain letters carry it. Built
// element by element from text: nothing in a statement becomes markup, a link or a picture.

viewer.prose = (() => {
  const { make, shown } = viewer.page;
  const LONGEST = 60_000;
  const SYMBOLS = {
    le: "≤", leq: "≤", leqslant: "≤", ge: "≥", geq: "≥", geqslant: "≥", ne: "≠", neq: "≠", lt: "<", gt: ">", times: "×", cdot: "·", div: "÷", pm: "±", dots: "…", ldots: "…", cdots: "⋯", infty: "∞",
    in: "∈", notin: "∉", subset: "⊂", subseteq: "⊆", cup: "∪", cap: "∩", emptyset: "∅", forall: "∀", exists: "∃", to: "→", rightarrow: "→", leftarrow: "←", Rightarrow: "⇒", oplus: "⊕", sum: "∑", prod: "∏", min: "min", max: "max", gcd: "gcd", log: "log", mod: "mod", bmod: "mod",
    alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", varepsilon: "ε", theta: "θ", lambda: "λ", mu: "μ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", varphi: "φ", omega: "ω", Delta: "Δ", Sigma: "Σ", Omega: "Ω",
    lfloor: "⌊", rfloor: "⌋", lceil: "⌈", rceil: "⌉", langle: "⟨", rangle: "⟩", equiv: "≡", approx: "≈", mid: "∣", land: "∧", lor: "∨", lnot: "¬", quad: " ", qquad: "  ", left: "", right: "", displaystyle: "", limits: "", ",": " ", ";": " ", ":": " ", "!": "", " ": " ", "{": "{", "}": "}", "%": "%", _: "_", "&": "&", "#": "#", $: "$", "\\": " ",
  };
  const PLAIN = new Set(["text", "mathrm", "mathit", "mathbf", "mathtt", "texttt", "textbf", "textit", "operatorname", "mathcal", "mathbb", "bold", "overline", "rm", "tt", "bf", "it"]);

  // TeX -> nodes. An unknown command stays as it is written.
  function tex(source) {
    let at = 0;
    const nodes = (end) => {
      const found = [];
      while (at < source.length && source[at] !== end) found.push(...one());
      if (source[at] === end) at++;
      return found;
    };
    const argument = () => {
      while (source[at] === " ") at++;
      if (source[at] !== "{") return at < source.length ? one() : [];
      at++;
      return nodes("}");
    };
    const one = () => {
      const letter = source[at++];
      if (letter === "{") return nodes("}");
      if (letter === "^") return [make("sup", {}, argument())];
      if (letter === "_") return [make("sub", {}, argument())];
      if (letter === "~") return [" "];
      if (letter === "-") return ["−"];
      if (letter !== "\\") return [letter];
      const name = /^([A-Za-z]+|.|$)/s.exec(source.slice(at))[0];
      at += name.length;
      if (name === "frac" || name === "dfrac" || name === "tfrac") return ["(", ...argument(), ")/(", ...argument(), ")"];
      if (name === "sqrt") return ["√(", ...argument(), ")"];
      if (PLAIN.has(name)) return argument();
      if (/^[A-Za-z]/.test(name)) while (source[at] === " " && SYMBOLS[name] !== undefined) at++;
      return [SYMBOLS[name] ?? `\\${name}`];
    };
    return make("span", { class: "tex" }, nodes(null));
  }

  const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\$\$([\s\S]+?)\$\$|\$(?!\s)((?:\\.|[^$\\\n])+?)\$(?!\d)|\\\(([\s\S]+?)\\\)|\\\[([\s\S]+?)\\\]|\*\*(?=\S)([^*\n]+?)\*\*|(?<![\w*])\*(?=\S)([^*\n]+?)\*(?![\w*])/g;

  function inline(text) {
    const parts = [];
    let end = 0;
    for (const found of text.matchAll(INLINE)) {
      if (found.index > end) parts.push(text.slice(end, found.index));
      const formula = found[3] ?? found[4] ?? found[5] ?? found[6];
      if (found[2] !== undefined) parts.push(make("code", {}, found[2]));
      else if (formula !== undefined) parts.push(tex(formula.trim()));
      else if (found[7] !== undefined) parts.push(make("strong", {}, inline(found[7])));
      else parts.push(make("em", {}, inline(found[8])));
      end = found.index + found[0].length;
    }
    parts.push(text.slice(end));
    return parts;
  }

  function render(text) {
    const place = make("div", { class: "prose", tabindex: 0 });
    const lines = shown(text).slice(0, LONGEST).split("\n");
    let list = null;
    let paragraph = [];
    const flush = () => {
      if (paragraph.length) place.append(make("p", {}, inline(paragraph.join("\n"))));
      paragraph = [];
    };
    for (let i = 0; i < lines.length; i++) {
      const line = lines[i];
      const fence = /^\s*(```+|~~~+)/.exec(line);
      const heading = /^(#{1,6})\s+(.*)/.exec(line);
      const item = /^\s*(?:[-*+]|\d+[.)])\s+(.*)/.exec(line);
      if (!item) list = null;
      if (fence) {
        flush();
        const body = [];
        while (++i < lines.length && !lines[i].trim().startsWith(fence[1])) body.push(lines[i]);
        place.append(make("pre", { tabindex: 0 }, viewer.code.paint(body.join("\n"))));
      } else if (heading) {
        flush();
        place.append(make("p", { class: "heading" }, inline(heading[2])));
      } else if (item) {
        flush();
        if (!list) place.append((list = make(/^\s*\d/.test(line) ? "ol" : "ul", {})));
        list.append(make("li", {}, inline(item[1])));
      } else if (!line.trim()) flush();
      else paragraph.push(line);
    }
    flush();
    return place;
  }

  return { render };
})();
