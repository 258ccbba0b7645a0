// The page that compares runs: one chooses balancers, conditions, values of axes and seeds; plots show means over what is left.
"use strict";

// Most groups of bars, and most plots of lines, that are drawn at once.
const GROUPS = 24;
const PLOTS = 12;

spray.overview = (data) => {
  const chosen = {
    balancers: new Set(data.balancers.keys()),
    conditions: new Set(data.conditions.keys()),
    seeds: new Set(data.seeds.keys()),
    axes: data.axes.map((axis) => new Set(axis.values.keys())),
  };
  const state = { measure: 0, workload: -1, axis: data.axes.findIndex((axis) => axis.numbers && axis.values.length > 1), size: "p99", drops: "cause" };
  let waiting = false;
  const changed = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawAll(data, chosen, state);
    });
  };
  selectors(data, chosen, changed);
  controls(data, state, changed);
  drawAll(data, chosen, state);
};

// Sets of buttons for what is to be shown.
const selectors = (data, chosen, changed) => {
  const place = document.getElementById("choices");
  if (!place) return;
  const sets = [
    ["Balancers", data.balancers, chosen.balancers, (index) => spray.colourName(index)],
    ["Conditions", data.conditions, chosen.conditions, null],
    ...data.axes.map((axis, index) => [axis.name, axis.values, chosen.axes[index], null]),
    ["Seeds", data.seeds, chosen.seeds, null],
  ].filter(([, names]) => names.length > 1);
  place.append(...sets.map((set) => chips(...set, changed)));
  place.hidden = sets.length === 0;
};

// A button for each name that takes it out of `shown` and puts it back.
const chips = (title, names, shown, colour, changed) => {
  const paint = () => buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(shown.has(index))));
  const flip = (index) => {
    if (!shown.delete(index)) shown.add(index);
    paint();
    changed();
  };
  const only = (index) => {
    shown.clear();
    shown.add(index);
    paint();
    changed();
  };
  const buttons = names.map((name, index) =>
    spray.el(
      "button",
      { type: "button", "aria-pressed": "true", title: "Click: show or hide. Double click: only this.", onclick: () => flip(index), ondblclick: () => only(index) },
      ...(colour ? [spray.el("i", { style: `background:${colour(index)}` })] : []),
      String(name),
    ),
  );
  const all = spray.el("button", { type: "button", class: "all", onclick: () => (names.forEach((_, index) => shown.add(index)), paint(), changed()) }, "all");
  const none = spray.el("button", { type: "button", class: "all", onclick: () => (shown.clear(), paint(), changed()) }, "none");
  return spray.el("fieldset", { "data-choice": title }, spray.el("legend", {}, title), ...buttons, all, none);
};

// What single plots let one choose.
const controls = (data, state, changed) => {
  const add = (id, ...selects) => {
    const host = spray.card(id);
    if (host) host.before(spray.el("div", { class: "controls" }, ...selects));
  };
  const measures = data.measures.map((measure, index) => [index, `${measure.title} (${measure.unit})`]);
  const pick = (key) => (value) => {
    state[key] = Number(value);
    for (const select of document.querySelectorAll(`select[name=${key}]`)) select.value = value;
    changed();
  };
  const named = (key, label, options) => {
    const box = spray.select(label, options, pick(key));
    box.querySelector("select").name = key;
    return box;
  };
  const workloads = data.workloads.length ? [named("workload", "Workload", [[-1, "all"], ...data.workloads.map((name, index) => [index, name])])] : [];
  add("measure", named("measure", "Measure", measures), ...workloads);
  const numeric = data.axes.map((axis, index) => [index, axis.name]).filter(([index]) => data.axes[index].numbers && data.axes[index].values.length > 1);
  add("axis", named("measure", "Measure", measures), ...(numeric.length > 1 ? [named("axis", "Along", numeric)] : []));
  add("sizes", spray.choices("Show", [["p99", "99th percentile"], ["mean", "mean"]], (value) => ((state.size = value), changed())));
  add("drops", spray.choices("Parts", [["cause", "by cause"], ["layer", "by place"]], (value) => ((state.drops = value), changed())));
};

// Means over what is chosen, drawn anew.
const drawAll = (data, chosen, state) => {
  const runs = data.runs.filter((run) => isChosen(data, chosen, run));
  const draw = { measure: drawMeasure, axis: drawAxis, fct: drawFct, goodput: drawGoodput, sizes: drawSizes, drops: drawDrops };
  for (const id of Object.keys(spray.plots)) delete spray.plots[id];
  for (const [id, plot] of Object.entries(draw)) {
    const host = spray.card(id);
    if (!host) continue;
    host.style.minHeight = `${host.offsetHeight}px`;
    host.replaceChildren();
    if (runs.length) plot(host, data, cellsOf(data, runs), state);
    else host.append(spray.el("p", { class: "soft" }, "Nothing is chosen."));
    host.style.minHeight = "";
  }
  rowsOf(data, new Set(runs));
};

const isChosen = (data, chosen, run) => {
  const cell = data.cells[run.cell];
  return (
    chosen.balancers.has(run.balancer) &&
    chosen.seeds.has(run.seed) &&
    chosen.conditions.has(cell.condition) &&
    cell.axes.every((value, axis) => chosen.axes[axis].has(value))
  );
};

// Shows the rows of the table whose runs are chosen.
const rowsOf = (data, runs) => {
  if (!rowsOf.byLink) rowsOf.byLink = new Map([...document.querySelectorAll("tbody a")].map((link) => [link.getAttribute("href"), link.closest("tr")]));
  for (const run of data.runs) {
    const row = rowsOf.byLink.get(`${run.folder}/report.html`);
    if (row) row.hidden = !runs.has(run);
  }
};

// Runs by cell, and in it by balancer: [{ name, cell, balancers: [[balancer, runs]] }].
const cellsOf = (data, runs) => {
  const cells = new Map();
  for (const run of runs) {
    if (!cells.has(run.cell)) cells.set(run.cell, new Map());
    const own = cells.get(run.cell);
    if (!own.has(run.balancer)) own.set(run.balancer, []);
    own.get(run.balancer).push(run);
  }
  const name = ({ condition, axes }) => [data.conditions[condition], ...axes.map((value, axis) => `${data.axes[axis].name} ${data.axes[axis].values[value]}`)].join(", ");
  const sorted = [...cells].sort(([a], [b]) => a - b);
  return sorted.map(([cell, own]) => ({ name: name(data.cells[cell]), cell: data.cells[cell], balancers: [...own].sort(([a], [b]) => a - b) }));
};

// The mean of some values, and half of its 95 % interval, or `null` where there is one value only.
const spread = (data, values) => {
  const own = values.filter((value) => value !== null && value !== undefined);
  const n = own.length;
  if (!n) return { mean: null, half: null };
  const mean = own.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2) return { mean, half: null };
  const sd = Math.sqrt(own.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1));
  return { mean, half: (data.t95[Math.min(n - 2, data.t95.length - 1)] * sd) / Math.sqrt(n) };
};

const valueOf = (state) => (run) => (state.workload < 0 ? run.values[state.measure] : run.workloads[state.workload] && run.workloads[state.workload][state.measure]);

const drawMeasure = (host, data, cells, state) => {
  const bar = ([balancer, runs]) => {
    const { mean, half } = spread(data, runs.map(valueOf(state)));
    return { name: data.balancers[balancer], colour: balancer, value: mean, half, note: runs.length > 1 ? `mean of ${runs.length} runs` : "one run" };
  };
  const groups = cells.slice(0, GROUPS).map(({ name, balancers }) => ({ title: name, bars: balancers.map(bar) }));
  spray.bars("measure", host, { groups, unit: data.measures[state.measure].unit });
  tellRest(host, cells.length, GROUPS);
};

const tellRest = (host, all, most) => {
  if (all > most) host.append(spray.el("p", { class: "soft" }, `The first ${most} of ${all} are shown; choose fewer above to see others.`));
};

// A line, with its band where there are several runs; `points` are [[x, spread of y]].
const withBand = (name, colour, points) => {
  const there = points.filter(([, { mean }]) => mean !== null);
  const edge = (sign) => there.map(([x, { mean, half }]) => [x, Math.max(mean + sign * (half || 0), 0)]);
  const outline = there.some(([, { half }]) => half !== null) ? [...edge(-1), ...edge(1).reverse()] : null;
  return {
    name,
    colour,
    x: there.map(([x]) => x),
    y: there.map(([, { mean }]) => mean),
    band: outline && { x: outline.map(([x]) => x), y: outline.map(([, y]) => y) },
  };
};

// A plot for each of the first `plots`, [{ name, options }], side by side.
const sideBySide = (id, host, plots) => {
  const grid = spray.el("div", { class: plots.length > 1 ? "grid" : "" });
  host.append(grid);
  for (const { name, options } of plots.slice(0, PLOTS)) {
    const own = spray.el("div", { class: "one" }, ...(plots.length > 1 ? [spray.el("h3", {}, name)] : []));
    grid.append(own);
    spray.lines(`${id}: ${name}`, own, { ...options, legend: true });
  }
  tellRest(host, plots.length, PLOTS);
};

const drawAxis = (host, data, cells, state) => {
  const { name: x, numbers } = data.axes[state.axis];
  const { title, unit } = data.measures[state.measure];
  // Cells that differ in nothing but this axis are in one plot.
  const plots = new Map();
  for (const { cell, balancers } of cells) {
    const others = cell.axes.map((value, axis) => (axis === state.axis || data.axes[axis].values.length < 2 ? "" : `${data.axes[axis].name} ${data.axes[axis].values[value]}`));
    const name = [data.conditions[cell.condition], ...others].filter(Boolean).join(", ");
    if (!plots.has(name)) plots.set(name, new Map());
    for (const [balancer, runs] of balancers) {
      const lines = plots.get(name);
      lines.set(balancer, [...(lines.get(balancer) || []), [numbers[cell.axes[state.axis]], spread(data, runs.map(valueOf(state)))]]);
    }
  }
  const line = ([balancer, points]) => ({ ...withBand(data.balancers[balancer], balancer, points.sort(([a], [b]) => a - b)), points: true });
  const options = (lines) => ({ x, y: `${title.toLowerCase().replace(/ \(.*\)$/, "")} (${unit})`, xText: (value) => `${x} ${spray.exact(value)}`, series: [...lines].sort(([a], [b]) => a - b).map(line) });
  sideBySide("axis", host, [...plots].map(([name, lines]) => ({ name, options: options(lines) })));
};

const drawFct = (host, data, cells) => {
  // At each share of the flows the mean time, with its interval.
  const line = ([balancer, runs]) => {
    const reached = Math.min(...runs.map((run) => run.fct.length));
    const points = data.percents.slice(0, reached).map((percent, at) => [percent, spread(data, runs.map((run) => run.fct[at]))]);
    const { x, y, band, ...rest } = withBand(data.balancers[balancer], balancer, points);
    return { ...rest, x: y, y: x, steps: true, band: band && { x: band.y, y: band.x } };
  };
  sideBySide("fct", host, cells.map(({ name, balancers }) => ({ name, options: { x: "completion time (us)", y: "share of flows (%)", top: 100, xToo: true, series: balancers.map(line) } })));
};

const drawGoodput = (host, data, cells) => {
  const options = ({ cell, balancers }) => {
    const bin = cell.end_us / data.bins;
    const time = (at) => Number(((at + 0.5) * bin).toPrecision(8));
    const line = ([balancer, runs]) =>
      withBand(data.balancers[balancer], balancer, Array.from({ length: data.bins }, (_, at) => [time(at), spread(data, runs.map((run) => run.goodput[at]))]));
    return { x: "time (us)", y: "goodput (Gb/s)", end: cell.end_us, time: true, series: balancers.map(line) };
  };
  sideBySide("goodput", host, cells.map((own) => ({ name: own.name, options: options(own) })));
};

const drawSizes = (host, data, cells, state) => {
  const sizes = (runs) => {
    const classes = new Map();
    for (const size of runs.flatMap((run) => run.sizes)) classes.set(size.up_to_bytes, [...(classes.get(size.up_to_bytes) || []), size]);
    const mean = (own, key) => own.reduce((sum, size) => sum + size[key], 0) / own.length;
    return [...classes].sort(([a], [b]) => a - b).map(([up_to_bytes, own]) => ({ up_to_bytes, flows: own.reduce((sum, size) => sum + size.flows, 0), mean: mean(own, "mean"), p99: mean(own, "p99") }));
  };
  const grid = spray.el("div", { class: cells.length > 1 ? "grid" : "" });
  host.append(grid);
  for (const { name, balancers } of cells.slice(0, PLOTS)) {
    const own = spray.el("div", { class: "one" }, ...(cells.length > 1 ? [spray.el("h3", {}, name)] : []));
    grid.append(own);
    spray.sizes(`sizes: ${name}`, own, balancers.map(([balancer, runs]) => ({ name: data.balancers[balancer], colour: balancer, sizes: sizes(runs), key: state.size })));
  }
  tellRest(host, cells.length, PLOTS);
};

const drawDrops = (host, data, cells, state) => {
  const byCause = state.drops === "cause";
  const names = byCause ? spray.causes : data.layers.map((name, layer) => [name, layer]);
  const bar = ([balancer, runs]) => {
    const sums = names.map(() => 0);
    for (const [layer, counts] of runs.flatMap((run) => run.drops)) counts.forEach((count, cause) => (sums[byCause ? cause : layer] += count / runs.length));
    return { name: data.balancers[balancer], parts: sums.map((value, at) => ({ name: names[at][0], colour: names[at][1], value })) };
  };
  const groups = cells.slice(0, GROUPS).map(({ name, balancers }) => ({ title: name, bars: balancers.map(bar) }));
  const used = names.filter((_, at) => groups.some((group) => group.bars.some((own) => own.parts[at].value)));
  host.append(spray.key(used));
  spray.bars("drops", host, { groups, unit: "frames" });
  tellRest(host, cells.length, GROUPS);
};
