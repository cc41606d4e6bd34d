"use strict";
// One quantity of several runs over each other, drawn by uPlot, with what it says in words below: a colour a run, or
// one for training and one for held out where a single run is shown.

viewer.chart = (() => {
  const { make, figure, shown } = viewer.page;
  const HEIGHT = 190;
  const LEAST_DRAG = 6; // pixels; less is a click
  const STEPS = [1, 2, 5].flatMap((one) => [0, 1, 2, 3, 4, 5, 6].map((power) => one * 10 ** power)).sort((a, b) => a - b);
  const SECONDS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const inks = new Map();

  // Colours are in the stylesheet, for both themes; a canvas wants them as they come out.
  function ink(kind) {
    if (!inks.has(kind)) {
      const probe = make("i", { class: `swatch ${kind}`, "aria-hidden": "true" });
      document.body.append(probe);
      inks.set(kind, getComputedStyle(probe).backgroundColor);
      probe.remove();
    }
    return inks.get(kind);
  }

  const kindOf = (line) => `run-${line.colour % 8}${line.isFaint ? " faint" : ""}`;
  const isDotted = (line) => line.label === "held out";

  function time(seconds) {
    if (seconds < 60) return `${+seconds.toFixed(1)} s`;
    if (seconds < 3600) return `${+(seconds / 60).toFixed(1)} min`;
    return seconds < 172_800 ? `${+(seconds / 3600).toFixed(1)} h` : `${+(seconds / 86_400).toFixed(1)} d`;
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
  function extent(lines, [first, last], isLog) {
    const inside = (line, values) => values.filter((value, i) => Number.isFinite(value) && line.xs[i] >= first && line.xs[i] <= last);
    const values = lines.filter(({ label }) => label !== "limit").flatMap((line) => [line.values, line.low ?? [], line.high ?? []].flatMap((one) => inside(line, one)));
    const usable = isLog ? values.filter((value) => value > 0) : values;
    const low = usable.reduce((a, b) => Math.min(a, b), Infinity);
    const high = usable.reduce((a, b) => Math.max(a, b), -Infinity);
    if (!usable.length) return isLog ? [0.1, 1] : [0, 1];
    if (isLog) return uPlot.rangeLog(low, high, 10, false);
    const floor = low >= 0 ? 0 : low;
    return [floor, high > floor ? high + (high - floor) * 0.04 : floor + 1];
  }

  // lines: [{run, name, colour, isFaint, label, steps, xs, values, low?, high?, hasBand?}]
  // options: width, smoothing, isLog, isTimed, span ([first, last] or null), mark (a step), open(line, step),
  // zoom(first, last)
  function chart(title, unit, lines, options) {
    const { isLog, isTimed } = options;
    const smoothed = lines.map((line) => (line.label === "training" ? { ...line, values: smooth(line.values, options.smoothing) } : line));
    const ends = smoothed.flatMap((line) => [line.xs[0], line.xs.at(-1)]);
    const whole = [Math.min(...ends), Math.max(...ends, Math.min(...ends) + 1)];
    const span = options.span ?? whole;
    const isDrawable = !isLog || smoothed.some((line) => line.values.some((value) => value > 0));
    const useLog = isLog && isDrawable;
    const left = useLog ? smoothed.reduce((sum, line) => sum + line.values.filter((value) => value <= 0).length, 0) : 0;

    const readout = make("p", { class: "readout", "aria-live": "polite" });
    const rest = () => readout.replaceChildren(...resting(smoothed, unit), ...(left ? [make("span", {}, `${left} values of 0 or less are not on a log scale`)] : []));
    rest();
    const field = make("div", {
      class: "plot",
      tabindex: 0,
      role: "group",
      "aria-roledescription": "chart",
      "aria-label": `${title}. ${summary(smoothed, unit)} Arrow keys read it step by step.`,
    });
    const plot = new uPlot(settings(smoothed, unit, { ...options, span, useLog, point }), columns(smoothed, useLog), field);
    field.plot = plot;

    function point(index) {
      if (index === null || index === undefined) return rest();
      const x = plot.data[0][index];
      readout.replaceChildren(`${isTimed ? time(x) : `step ${x}`}: `, ...at(smoothed, x, unit, isTimed));
    }

    // The line that the pointer is nearest to, at the step that it is nearest to.
    function aim(event) {
      // From the event, since a tap comes before the cursor has moved there.
      const box = plot.over.getBoundingClientRect();
      const index = plot.posToIdx(event.clientX - box.left);
      const y = event.clientY - box.top;
      const near = smoothed.filter(({ label }) => label !== "limit").map((line) => ({ line, i: nearest(line.xs, plot.data[0][index], isTimed) })).filter(({ i }) => i >= 0);
      const far = ({ line, i }) => Math.abs(plot.valToPos(line.values[i], "y") - y);
      const best = near.reduce((one, other) => (one && far(one) <= far(other) ? one : other), null);
      if (best) options.open(best.line, best.line.steps[best.i]);
    }

    function press(event) {
      const xs = plot.data[0];
      const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
      const here = plot.cursor.idx;
      if (event.key in moves) {
        const from = here ?? (moves[event.key] > 0 ? -1 : xs.length);
        const next = Math.max(0, Math.min(xs.length - 1, from + moves[event.key]));
        plot.setCursor({ left: plot.valToPos(xs[next], "x"), top: 0 });
      } else if (event.key === "Enter" && Number.isInteger(here)) {
        const line = smoothed.find((one) => nearest(one.xs, xs[here], isTimed) >= 0);
        options.open({ run: line.run }, line.steps[nearest(line.xs, xs[here], isTimed)]);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    }

    let down = 0;
    plot.over.addEventListener("mousedown", (event) => (down = event.clientX));
    // Not "click", which uPlot stops where the pointer had not moved before.
    plot.over.addEventListener("mouseup", (event) => event.button === 0 && Math.abs(event.clientX - down) < LEAST_DRAG && aim(event));
    field.addEventListener("keydown", press);
    field.addEventListener("blur", () => plot.setCursor({ left: -10, top: -10 }));
    return make("figure", { "data-title": shown(title).toLowerCase() }, make("figcaption", {}, shown(title)), field, readout);
  }

  // What uPlot draws: a column of x, one a line, and two more for a line with a band.
  function columns(lines, useLog) {
    const on = (values) => (useLog ? values.map((value) => (value > 0 ? value : null)) : values);
    const tables = lines.flatMap((line) => [line.values, ...(line.hasBand ? [line.high, line.low] : [])].map((values) => [line.xs, on(values)]));
    return uPlot.join(tables);
  }

  function settings(lines, unit, { width, span, useLog, isTimed, mark, point, zoom }) {
    const soft = ink("axis");
    const axis = { stroke: soft, font: "11px system-ui, sans-serif", grid: { stroke: ink("rule"), width: 1 }, ticks: { show: false } };
    const label = (value) => (value === null ? "" : unit === "share" ? `${+(100 * value).toFixed(2)} %` : `${+value.toPrecision(4)}`);
    const series = lines.flatMap((line) => {
      const stroke = ink(kindOf(line));
      const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
      const own = {
        label: line.label,
        stroke,
        width: isDotted(line) ? 2.2 : 1.5,
        dash: line.label === "limit" ? [2, 5] : null,
        spanGaps: true,
        points: { show: isDotted(line) || line.values.length === 1, size: 6, fill: stroke },
      };
      return line.hasBand ? [own, edge, edge] : [own];
    });
    const bands = [];
    let number = 1;
    for (const line of lines) {
      if (line.hasBand) bands.push({ series: [number + 1, number + 2], fill: ink(`${kindOf(line)} band`) });
      number += line.hasBand ? 3 : 1;
    }
    const drag = { x: true, y: false, setScale: false, dist: LEAST_DRAG };
    return {
      width,
      height: HEIGHT,
      padding: [8, 10, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag, bind: { dblclick: () => null }, points: { size: 7 } },
      scales: { x: { time: false, range: () => span }, y: { distr: useLog ? 3 : 1, range: () => extent(lines, span, useLog) } },
      axes: [
        { ...axis, size: 24, gap: 2, incrs: isTimed ? SECONDS : STEPS, values: (_, splits) => splits.map((value) => (isTimed ? time(value) : `${value}`)) },
        { ...axis, size: 52, gap: 3, values: (_, splits) => splits.map(label) },
      ],
      series: [{}, ...series],
      bands,
      hooks: {
        setCursor: [(plot) => plot.data && point(plot.cursor.idx)],
        setSelect: [(plot) => plot.select.width >= LEAST_DRAG && zoom?.(plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x"))],
        draw: [(plot) => (lines.filter((line) => line.low && !line.hasBand).forEach((line) => drawIntervals(plot, line)), mark && drawMark(plot, mark))],
      },
    };
  }

  function drawIntervals(plot, line) {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.strokeStyle = ink(kindOf(line));
    ctx.globalAlpha = 0.6;
    ctx.lineWidth = 1.2 * devicePixelRatio;
    ctx.beginPath();
    line.xs.forEach((value, i) => {
      if (!Number.isFinite(line.low[i]) || !Number.isFinite(line.high[i])) return;
      const x = plot.valToPos(value, "x", true);
      ctx.moveTo(x, plot.valToPos(line.low[i], "y", true));
      ctx.lineTo(x, plot.valToPos(line.high[i], "y", true));
    });
    ctx.stroke();
    ctx.restore();
  }

  function drawMark(plot, step) {
    const { ctx } = plot;
    const { top, height } = plot.bbox;
    const x = plot.valToPos(step, "x", true);
    ctx.save();
    ctx.strokeStyle = ink("axis");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.restore();
  }

  // Where a line has a value at x; of times, which are each run's own, the nearest one.
  function nearest(xs, x, isTimed) {
    if (!isTimed) return xs.indexOf(x);
    return xs.reduce((best, value, i) => (Math.abs(value - x) < Math.abs(xs[best] - x) ? i : best), 0);
  }

  // One entry a line: how it is drawn, whose it is where there are several runs, what it is, and a text.
  function entries(lines, read) {
    const isOneRun = new Set(lines.map(({ run }) => run)).size === 1;
    return lines.map((line) => {
      const text = read(line);
      if (!text) return null;
      const name = isOneRun && !line.hasBand ? null : make("span", { class: "name" }, shown(line.name));
      return make("span", { class: "value" }, make("i", { class: `swatch ${kindOf(line)} ${isDotted(line) ? "dotted" : ""}` }), name, name ? ", " : " ", `${shown(line.label)} ${text}`);
    }).filter(Boolean);
  }

  function at(lines, x, unit, isTimed) {
    return entries(lines, (line) => {
      const i = nearest(line.xs, x, isTimed);
      if (i < 0) return "";
      const range = line.hasBand ? ` (${figure(line.low[i], unit)} to ${figure(line.high[i], unit)})` : "";
      return figure(line.values[i], unit) + range;
    });
  }

  function resting(lines, unit) {
    return entries(lines, (line) => (line.values.length === 1 ? "" : `${figure(line.values[0], unit)} → `) + figure(line.values.at(-1), unit));
  }

  function summary(lines, unit) {
    const ends = (line) => `${figure(line.values[0], unit)} at step ${line.steps[0]} to ${figure(line.values.at(-1), unit)} at step ${line.steps.at(-1)}`;
    return lines.map((line) => `${shown(line.name)} (${shown(line.label)}): ${ends(line)}.`).join(" ");
  }

  return { chart, forget: () => inks.clear() };
})();
