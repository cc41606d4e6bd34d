"use strict";
// A response token by token, where training recorded figures of it: coloured by one of them, all of them on hover.

viewer.tokens = (() => {
  const { make, replace, shown, figure } = viewer.page;
  const NAMES = { logp: "log-prob", entropy: "entropy", ratio: "ratio", sampler_logp: "sampler's log-prob" };
  const SHADES = 8;

  // How far a figure is from what is usual: 0 to SHADES - 1; the sign says which side of it.
  const DISTANCES = { logp: (value) => -value / 4, sampler_logp: (value) => -value / 4, entropy: (value) => value / 3, ratio: (value) => Math.log(Math.max(value, 1e-6)) / 0.3 };

  function shade(name, value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "";
    const distance = DISTANCES[name](value);
    const strength = Math.min(SHADES - 1, Math.round(Math.abs(distance) * (SHADES - 1)));
    return `${distance < 0 ? "below" : "above"}-${strength}`;
  }

  function render(rollout) {
    const known = Object.keys(NAMES).filter((name) => rollout.tokens.some((token) => Number.isFinite(token[name])));
    const readout = make("p", { class: "readout", "aria-live": "polite" }, "Point at a token, or step through them with ← and →.");
    const body = make("pre", { class: "tokens", tabindex: 0, id: "text-tokens", keydown: press, pointerover: (event) => event.target.dataset.token && tell(+event.target.dataset.token) });
    let at = -1;

    function tell(number) {
      body.children[at]?.classList.remove("at");
      at = number;
      body.children[at].classList.add("at");
      const token = rollout.tokens[at];
      const figures = known.map((name) => `${NAMES[name]} ${token[name] === null ? "none" : figure(token[name])}`);
      const why = rollout.masked_why ? `masked: ${rollout.masked_why}` : `advantage ${rollout.advantage === null ? "none" : viewer.list.signed(rollout.advantage)}`;
      readout.textContent = `Token ${at + 1} of ${rollout.tokens.length} ${JSON.stringify(shown(token.text))}: ${[...figures, why].join(", ")}`;
    }

    function press(event) {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      event.stopPropagation();
      tell(Math.max(0, Math.min(rollout.tokens.length - 1, at + move)));
    }

    function colour(name) {
      replace(body, rollout.tokens.map((token, number) => make("span", { class: `token ${shade(name, token[name])}`, "data-token": number }, shown(token.text))));
      at = -1;
    }

    const choice = make("select", { id: "token-colour", change: (event) => colour(event.target.value) }, known.map((name) => make("option", { value: name }, NAMES[name])));
    colour(known[0]);
    return make("details", { class: "text", open: true }, make("summary", {}, "Tokens", make("span", { class: "soft" }, ` ${rollout.tokens.length}`)), make("label", { class: "choice" }, "Colour by ", choice), readout, body);
  }

  return { render };
})();
