"use strict";
// Statements as they are meant: markdown-it reads the Markdown that problem sites write, KaTeX the TeX in it. The page is
// built element by element from markdown-it's tokens, so that no text of a statement passes through markup.

viewer.prose = (() => {
  const { make, shown } = viewer.page;
  const LONGEST = 60_000;
  const TAGS = new Set("p em strong s ul ol li blockquote table thead tbody tr th td".split(" "));
  // Bounded, so that a statement of nothing but openers costs no more than a long one.
  const FORMULA = /\$\$\$(?!\s)((?:\\.|[^$\\]){1,2000}?)\$\$\$|\$\$([\s\S]{1,2000}?)\$\$|\$(?!\s)((?:\\.|[^$\\\n]){1,2000}?)(?<!\s)\$(?!\d)|\\\(([\s\S]{1,2000}?)\\\)|\\\[([\s\S]{1,2000}?)\\\]/y;
  const KATEX = { output: "mathml", trust: false, strict: "ignore", maxExpand: 200, maxSize: 20 };

  // A picture would be asked for at another host.
  const markdown = markdownit({ html: false }).disable(["image", "html_block", "html_inline"]);
  markdown.inline.ruler.before("escape", "formula", (state, silent) => {
    FORMULA.lastIndex = state.pos;
    const found = FORMULA.exec(state.src);
    if (!found) return false;
    if (!silent) {
      const token = state.push("formula", "", 0);
      token.content = found.slice(1).find((part) => part !== undefined).trim();
      token.block = found[2] !== undefined || found[5] !== undefined;
    }
    state.pos += found[0].length;
    return true;
  });

  function fill(root, tokens) {
    const open = [root];
    for (const token of tokens) {
      const place = open.at(-1);
      if (token.hidden) continue;
      if (token.type === "inline") fill(place, token.children);
      else if (token.nesting < 0) open.pop();
      else if (token.nesting === 0) place.append(leaf(token));
      else {
        const element = opened(token);
        place.append(element);
        open.push(element);
      }
    }
    return root;
  }

  function opened(token) {
    if (token.type === "heading_open") return make("p", { class: "heading" });
    if (token.type === "link_open") return link(token.attrGet("href") ?? "");
    if (token.type === "ordered_list_open") return make("ol", { start: token.attrGet("start") });
    return make(TAGS.has(token.tag) ? token.tag : "span");
  }

  // A link of a statement tells its host nothing, opens apart, and says where it leads.
  function link(address) {
    if (!/^https?:\/\//i.test(address)) return make("span", { title: address });
    return make("a", { href: address, title: address, rel: "noopener noreferrer nofollow", target: "_blank" });
  }

  function leaf(token) {
    const { type, content } = token;
    if (type === "softbreak") return "\n";
    if (type === "hardbreak" || type === "hr") return make(token.tag);
    if (type === "code_inline") return make("code", {}, content);
    if (type === "formula") return formula(content, token.block);
    if (type === "fence" || type === "code_block") {
      return make("pre", { tabindex: 0 }, viewer.code.paint(content.replace(/\n$/, ""), token.info.trim().split(/\s/)[0]));
    }
    return content;
  }

  // As MathML, which browsers draw in their own letters; what KaTeX cannot read stays as it is written.
  function formula(source, isBlock) {
    const place = make("span", { class: isBlock ? "tex block" : "tex" });
    try {
      katex.render(source, place, { ...KATEX, displayMode: isBlock });
    } catch {
      place.replaceChildren(source);
    }
    return place;
  }

  function render(text) {
    // A chat template puts its marks right behind a statement, also behind the end of a block.
    const source = shown(text).slice(0, LONGEST).replace(/^(`{3,}|~{3,})(?=<\|)/gm, "$1\n");
    return fill(make("div", { class: "prose", tabindex: 0 }), markdown.parse(source, {}));
  }

  return { render };
})();
