// Lines over a common x axis, drawn by uPlot: hover, drag to zoom, double click to reset; `+`, `-`, `0` and the arrow keys do the same.
"use strict";

// Draws a plot into `host`. `options`:
//   x, y       labels of the axes, with their units
//   series     [{ name, colour, x, y, band, steps, points }]: `colour` is a number; `band` an outline { x, y }
//   moments    [{ at_us, what }]: dashed verticals
//   time       whether x is the run's time, so that zooming goes for all such plots
//   end        the least that the x axis reaches to; `top` the same of the y axis
//   isShare    whether y is a share, so that its axis ends at 100
//   view       where the x axis ends before one zooms, if it is to end before the last value
//   log        whether x is logarithmic, and to which base: 2 or 10; `xText`, `yText` turn a value into text
//   rows       names of the whole numbers of the y axis, from 0
spray.lines = (id, host, options) => {
  const { series, moments = [], log = 0 } = options;
  const xText = options.xText || ((value) => `${spray.exact(value)} ${unitOf(options.x)}`);
  const yText = options.yText || ((value) => `${spray.exact(value)} ${unitOf(options.y)}`);
  // An interval of few runs may be far longer than its value: axes go to three times the value.
  const end = (one, key) => Math.min(Math.max(...one.band[key]), 3 * Math.max(...one[key]));
  const reach = series.flatMap((one) => (one.band && !log ? [Math.min(...one.band.x), end(one, "x")] : []));
  const xs = ascending(series, options.time || options.end ? [0, options.end || 0, ...reach] : reach);
  const data = [xs, ...series.map((one) => aligned(one, xs))];
  const top = Math.max(options.top || 0, ...series.map((one) => (one.band ? end(one, "y") * 1.02 : 0)));
  const colours = series.map((one) => spray.colourName(one.colour));
  const frame = spray.el("div", {
    class: "frame",
    tabindex: "0",
    role: "img",
    "aria-label": `${options.y} over ${options.x}: ${series.map((one) => one.name).join(", ")}. Arrow keys move the cursor, + and - zoom, 0 shows all.`,
  });
  let plot = null;
  let focus = null;

  const whole = [xs[0], xs[xs.length - 1]];
  const height = () => options.height || (host.clientWidth < 420 ? 210 : 260);
  const tip = (u) => {
    const { left, top, idx } = u.cursor;
    if (idx === null || idx === undefined || left < 0) return spray.tip.hide();
    const box = u.over.getBoundingClientRect();
    const at = u.posToVal(left, "x");
    const row = (one, index) => {
      const own = u.cursor.idxs[index + 1];
      if (!u.series[index + 1].show || own === null || own === undefined || data[index + 1][own] === null) return null;
      const beside = Math.abs(data[0][own] - at) > (u.scales.x.max - u.scales.x.min) / 60;
      const value = yText(data[index + 1][own]) + (beside || log ? ` at ${xText(data[0][own])}` : "");
      return { colour: colours[index], name: one.name, value };
    };
    const near = moments.filter((moment) => Math.abs(u.valToPos(moment.at_us, "x") - left) < 5);
    const rows = [...series.map(row).filter(Boolean), ...near.map(({ what }) => ({ name: what, value: "" }))];
    spray.tip.show(box.left + left, box.top + top, xText(Number(at.toPrecision(6))), rows.slice(0, 24));
  };
  const soft = () => spray.css("--soft");
  const axis = (label, values) => ({
    label,
    labelSize: 22,
    labelFont: "12px system-ui, sans-serif",
    font: "12px system-ui, sans-serif",
    stroke: soft,
    grid: { stroke: () => spray.css("--grid"), width: 1 },
    ticks: { stroke: () => spray.css("--grid"), width: 1, size: 5 },
    values: (_, splits) => splits.map((split) => (split === null ? "" : values(split))),
  });
  const line = (one, index) => ({
    label: one.name,
    stroke: () => (one.points === "only" ? "transparent" : spray.colour(one.colour)),
    width: 2,
    dash: spray.dash(one.colour),
    spanGaps: true,
    paths: one.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
    points: {
      show: Boolean(one.points),
      size: 7,
      stroke: () => spray.colour(one.colour),
      fill: () => spray.colour(one.colour),
    },
    show: !one.hidden,
  });
  const settings = (width) => ({
    width,
    height: height(),
    padding: [10, 20, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.3 },
    cursor: {
      focus: { prox: series.length > 2 ? 16 : -1 },
      drag: { x: true, y: false },
      dataIdx: (u, index, at) => (index === 0 ? at : nearest(data[index], at)),
    },
    scales: {
      x: { time: false, ...(log ? { distr: 3, log, range: around } : {}) },
      y: { range: options.rows ? [-0.5, options.rows.length - 0.5] : (_, low, high) => [0, options.isShare ? 105 : Math.max(high * 1.05, top) || 1] },
    },
    axes: [
      {
        ...axis(options.x, log === 2 ? xText : spray.short),
        size: 30,
        labelSize: 20,
        ...(log ? { splits: (u) => roundSplits(u, log), filter: (_, splits) => splits } : {}),
      },
      options.rows
        ? { ...axis("", (at) => options.rows[at] || ""), splits: () => options.rows.map((_, at) => at), size: 110 }
        : { ...axis(options.y, spray.short), size: 52 },
    ],
    series: [{}, ...series.map(line)],
    hooks: {
      drawClear: [(u) => bands(u, series, focus)],
      setSeries: [(_, index, { focus: is }) => (focus = is && index ? index - 1 : null)],
      draw: [(u) => dashes(u, moments)],
      setCursor: [tip],
      setScale: [
        (u, key) => {
          if (key !== "x" || !options.time || !u.status) return;
          const { min, max } = u.scales.x;
          spray.time.show(min <= whole[0] && max >= whole[1] ? null : [min, max]);
        },
      ],
    },
  });
  const zoom = (range) => {
    const [min, max] = range || whole;
    if (plot && (plot.scales.x.min !== min || plot.scales.x.max !== max)) plot.setScale("x", { min, max });
  };

  const legend =
    !options.rows && (series.length > 1 || options.legend)
      ? [
          spray.legend(
            series.map((one, i) => ({ ...one, colour: colours[i] })),
            (index, shown) => plot.setSeries(index + 1, { show: shown }),
          ),
        ]
      : [];
  host.append(...legend, frame);
  spray.sized(host, (width) => {
    if (plot) plot.setSize({ width, height: height() });
    else {
      plot = new uPlot(settings(width), data, frame);
      if (options.view) plot.setScale("x", { min: xs[0], max: options.view });
    }
  });
  if (options.view)
    host.append(spray.el("p", { class: "soft" }, `The rest, up to ${xText(whole[1])}: double click, or press 0.`));
  frame.addEventListener("keydown", (event) => keys(event, plot, zoom, xs));
  frame.addEventListener("blur", () => spray.tip.hide());
  frame.addEventListener("mouseleave", () => spray.tip.hide());
  if (options.time) {
    spray.time.members.push([frame, zoom]);
    if (spray.time.range) zoom(spray.time.range);
  }
  spray.redraws.push([frame, () => plot && plot.redraw(false)]);
  const shown = () => series.filter((_, index) => plot.series[index + 1].show);
  spray.plots[id] = {
    ...spray.saves(
      id,
      host,
      (width) => spray.saves.lines(width, { options, series: shown(), scales: plot.scales }),
      () => pointRows(options, series),
    ),
    series: () =>
      series.map((one, index) => ({ name: one.name, x: one.x, y: one.y, shown: plot ? plot.series[index + 1].show : true })),
    plot: () => plot,
  };
};

// The rows of its CSV: a point each, with the ends of its interval where there are any.
const pointRows = ({ x, y }, series) => {
  const ends = series.some((one) => one.band) ? [`low: ${y}`, `high: ${y}`] : [];
  const point = ({ name, x, y, band }) =>
    x.map((value, index) => {
      const edge = band && band.y;
      return [name, value, y[index], ...ends.map((_, high) => edge && edge[high ? edge.length - 1 - index : index])];
    });
  return [["series", x, y, ...ends], ...series.flatMap(point)];
};

const unitOf = (label) => (label.match(/\(([^)]*)\)$/) || ["", label])[1];

// All x of the series, each once.
const ascending = (series, more) =>
  [...new Set([...more, ...series.flatMap((one) => one.x)])].filter((x) => x !== null).sort((a, b) => a - b);

// The y of a series at each of `xs`; `null` where it has none.
const aligned = (one, xs) => {
  const places = new Map(xs.map((x, index) => [x, index]));
  const ys = new Array(xs.length).fill(null);
  one.x.forEach((x, index) => {
    if (x !== null) ys[places.get(x)] = one.y[index];
  });
  return ys;
};

// The index next to `at` at which there is a value.
const nearest = (values, at) => {
  for (let away = 0; away < values.length; away++) {
    if (at - away >= 0 && values[at - away] !== null) return at - away;
    if (at + away < values.length && values[at + away] !== null) return at + away;
  }
  return null;
};

// A logarithmic axis has some room on either side.
const around = (_, low, high) => [low / 1.3, high * 1.3];

// Round values along a logarithmic axis, as many as there is room for.
const roundSplits = (u, base) => {
  const { min, max } = u.scales.x;
  const powers = Array.from({ length: 90 }, (_, power) => base ** (power - 30)).filter(
    (value) => value >= min / base && value <= max,
  );
  const inside = (values) => values.filter((value) => value >= min && value <= max);
  const most = Math.max(u.width / 80, 2);
  const fine = base === 10 ? inside(powers.flatMap((power) => [power, 2 * power, 5 * power])) : [];
  const there = fine.length && fine.length <= most ? fine : inside(powers);
  const every = Math.ceil(there.length / most);
  return there.filter((_, index) => index % every === 0);
};

// Fills the bands behind the lines of the series that are shown: strongly where they are few, or that of the one under the cursor.
const bands = (u, series, focus) => {
  const crowded = series.length > 4;
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  series.forEach((one, index) => {
    if (!one.band || !u.series[index + 1].show || (crowded && focus !== null && focus !== index)) return;
    ctx.beginPath();
    one.band.x.forEach((x, at) => ctx.lineTo(u.valToPos(x, "x", true), u.valToPos(one.band.y[at], "y", true)));
    ctx.closePath();
    ctx.globalAlpha = crowded && focus === null ? 0.06 : 0.18;
    ctx.fillStyle = spray.colour(one.colour);
    ctx.fill();
  });
  ctx.restore();
};

// Dashed verticals at `moments`.
const dashes = (u, moments) => {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = spray.css("--soft");
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.lineWidth = devicePixelRatio;
  for (const { at_us } of moments) {
    if (at_us < u.scales.x.min || at_us > u.scales.x.max) continue;
    const x = Math.round(u.valToPos(at_us, "x", true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
};

// What keys do in a plot that has the focus.
const keys = (event, plot, zoom, xs) => {
  const { min, max } = plot.scales.x;
  const middle = (min + max) / 2;
  const scaled = (by) => [
    Math.max(middle - ((max - min) / 2) * by, xs[0]),
    Math.min(middle + ((max - min) / 2) * by, xs[xs.length - 1]),
  ];
  const step = plot.over.clientWidth / 50;
  const left = plot.cursor.left < 0 ? 0 : plot.cursor.left;
  const move = (by) =>
    plot.setCursor({ left: Math.min(Math.max(left + by, 0), plot.over.clientWidth), top: plot.over.clientHeight / 2 });
  const actions = {
    "+": () => zoom(scaled(0.5)),
    "=": () => zoom(scaled(0.5)),
    "-": () => zoom(scaled(2)),
    0: () => zoom(null),
    ArrowLeft: () => move(-step),
    ArrowRight: () => move(step),
    Escape: () => spray.tip.hide(),
  };
  const action = actions[event.key];
  if (!action || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  action();
};
