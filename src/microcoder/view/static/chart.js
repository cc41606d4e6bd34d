"use strict";
// One quantity of several runs over each other, as SVG: a colour and a dash a run; dots are held-out values.

viewer.chart = (() => {
  const { make, draw, figure, shown } = viewer.page;
  const HEIGHT = 190;
  const MARGIN = { left: 48, right: 10, top: 8, bottom: 22 };
  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4"];

  // Round numbers that cover a range.
  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999);
    const found = [];
    for (let i = Math.ceil(low / size - 1e-9); i * size <= high + size * 1e-9; i++) found.push(i * size);
    return found;
  }

  function smooth(values, width) {
    if (width < 2) return values;
    let sum = 0;
    return values.map((value, i) => {
      sum += value - (i >= width ? values[i - width] : 0);
      return sum / Math.min(i + 1, width);
    });
  }

  // A limit that is far off is not drawn, or what it limits would be flat.
  function extent(lines) {
    const values = lines.filter(({ label }) => label !== "limit").flatMap((line) => [...line.values, ...(line.low ?? []), ...(line.high ?? [])]).filter(Number.isFinite);
    const low = values.reduce((a, b) => Math.min(a, b), Infinity);
    const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    const floor = low >= 0 ? 0 : low;
    return [floor, high > floor ? high : floor + 1];
  }

  // lines: [{run, name, colour, label, steps, values, low?, high?}]
  function chart(title, unit, lines, { width, smoothing, open }) {
    const smoothed = lines.map((line) => (line.label === "training" ? { ...line, values: smooth(line.values, smoothing) } : line));
    const [low, high] = extent(smoothed);
    const rows = ticks(low, high, 5);
    const gap = rows.length > 1 ? rows[1] - rows[0] : high - low;
    const top = high > rows.at(-1) + gap * 1e-6 ? rows.at(-1) + gap : high;
    if (top > rows.at(-1) + gap / 2) rows.push(top);
    const steps = smoothed.flatMap((line) => [line.steps[0], line.steps.at(-1)]);
    const first = Math.min(...steps);
    const last = Math.max(...steps, first + 1);
    const x = (step) => MARGIN.left + ((step - first) / (last - first)) * (width - MARGIN.left - MARGIN.right);
    const y = (value) => HEIGHT - MARGIN.bottom - ((value - low) / (top - low)) * (HEIGHT - MARGIN.top - MARGIN.bottom);

    const marker = draw("line", { class: "marker", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom, visibility: "hidden" });
    const picture = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": "true" });
    for (const value of rows) {
      picture.append(draw("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }));
      const label = unit === "share" ? `${+(100 * value).toFixed(2)} %` : `${+value.toPrecision(4)}`;
      picture.append(draw("text", { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, label));
    }
    for (const step of ticks(first, last, width / 90).filter(Number.isInteger)) {
      picture.append(draw("text", { x: x(step), y: HEIGHT - 6, "text-anchor": "middle" }, `${step}`));
    }
    smoothed.forEach((line) => picture.append(...shapes(line, x, y)));
    picture.append(marker);

    const readout = make("p", { class: "readout", "aria-live": "polite" }, resting(smoothed, unit));
    const known = [...new Set(smoothed.flatMap((line) => line.steps))].sort((a, b) => a - b);
    let at = null;

    function point(index) {
      at = index;
      marker.setAttribute("visibility", at === null ? "hidden" : "visible");
      if (at === null) return readout.replaceChildren(...resting(smoothed, unit));
      const step = known[at];
      marker.setAttribute("x1", x(step));
      marker.setAttribute("x2", x(step));
      readout.replaceChildren(`step ${step}: `, ...values(smoothed, step, unit));
    }

    function nearest(event) {
      const place = ((event.clientX - picture.getBoundingClientRect().left) / picture.getBoundingClientRect().width) * width;
      return known.reduce((best, step, i) => (Math.abs(x(step) - place) < Math.abs(x(known[best]) - place) ? i : best), 0);
    }

    function press(event) {
      const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
      if (event.key in moves) {
        const from = at ?? (moves[event.key] > 0 ? -1 : known.length);
        point(Math.max(0, Math.min(known.length - 1, from + moves[event.key])));
      } else if (event.key === "Enter" && at !== null) open(known[at]);
      else return;
      event.preventDefault();
      event.stopPropagation();
    }

    const field = make(
      "div",
      {
        class: "plot",
        tabindex: 0,
        role: "group",
        "aria-roledescription": "chart",
        "aria-label": `${title}. ${summary(smoothed, unit)} Arrow keys read it step by step.`,
        pointermove: (event) => point(nearest(event)),
        pointerleave: () => point(null),
        blur: () => point(null),
        keydown: press,
        click: (event) => open(known[nearest(event)]),
      },
      picture,
    );
    return make("figure", {}, make("figcaption", {}, shown(title)), field, readout);
  }

  function shapes(line, x, y) {
    const isHeldOut = line.label === "held out";
    const path = line.steps.map((step, i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(line.values[i]).toFixed(1)}`).join("");
    const dash = line.label === "limit" ? "1 5" : DASHES[line.colour % DASHES.length];
    const kind = `line run-${line.colour % 8} ${isHeldOut ? "" : "training"}`;
    const found = [draw("path", { class: kind, d: path, "stroke-dasharray": dash || null })];
    if (!isHeldOut && line.steps.length > 1) return found;
    line.steps.forEach((step, i) => {
      const [low, high] = [line.low?.[i], line.high?.[i]];
      if (Number.isFinite(low) && Number.isFinite(high)) {
        found.push(draw("line", { class: `bar run-${line.colour % 8}`, x1: x(step), x2: x(step), y1: y(low), y2: y(high) }));
      }
      found.push(draw("circle", { class: `dot run-${line.colour % 8}`, cx: x(step), cy: y(line.values[i]), r: 3 }));
    });
    return found;
  }

  function named(line, lines) {
    const both = lines.some((other) => other.run === line.run && other.label !== line.label);
    return shown(line.name) + (both ? ` (${line.label})` : "");
  }

  // One entry a run: its colour, its name, then training, held out and what else there is.
  function entries(lines, read) {
    return [...new Set(lines.map((line) => line.run))].map((run) => {
      const own = lines.filter((line) => line.run === run);
      const texts = own.map((line) => [line.label, read(line)]).filter(([, text]) => text);
      if (!texts.length) return null;
      const body = texts.map(([label, text]) => (own.length > 1 && label !== "training" ? `${label} ${text}` : text)).join(", ");
      return make("span", { class: "value" }, make("i", { class: `swatch run-${own[0].colour % 8}` }), make("span", { class: "name" }, shown(own[0].name)), ` ${body}`);
    }).filter(Boolean);
  }

  function values(lines, step, unit) {
    return entries(lines, (line) => {
      const i = line.steps.indexOf(step);
      return i < 0 ? "" : figure(line.values[i], unit);
    });
  }

  function resting(lines, unit) {
    return entries(lines, (line) => `${figure(line.values[0], unit)} → ${figure(line.values.at(-1), unit)}`);
  }

  function summary(lines, unit) {
    const ends = (line) => `${figure(line.values[0], unit)} at step ${line.steps[0]} to ${figure(line.values.at(-1), unit)} at step ${line.steps.at(-1)}`;
    return lines.map((line) => `${named(line, lines)}: ${ends(line)}.`).join(" ");
  }

  return { chart };
})();
