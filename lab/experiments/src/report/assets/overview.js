// The page that compares runs: one chooses balancers, conditions, values of axes and seeds; plots show means over what is left.
"use strict";

spray.overview = (data) => {
  const chosen = {
    balancers: new Set(data.balancers.keys()),
    conditions: new Set(data.conditions.keys()),
    seeds: new Set(data.seeds.keys()),
    axes: data.axes.map((axis) => new Set(axis.values.keys())),
  };
  const state = {
    measure: Math.max(0, data.measures.findIndex((measure) => measure.key === "fct_max_us")),
    workload: -1,
    axis: data.axes.findIndex((axis) => axis.numbers && axis.values.length > 1),
    size: "p99",
    drops: "cause",
    log: 0,
  };
  let waiting = false;
  const changed = () => {
    if (waiting) return;
    waiting = true;
    // Once for several clicks in a row.
    setTimeout(() => {
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
  const show = (indices) => {
    shown.clear();
    indices.forEach((index) => shown.add(index));
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(shown.has(index))));
    changed();
  };
  const flip = (index) => show(shown.has(index) ? [...shown].filter((one) => one !== index) : [...shown, index]);
  const buttons = names.map((name, index) =>
    spray.el(
      "button",
      {
        type: "button",
        "aria-pressed": "true",
        title: "Click: show or hide. Double click: only this.",
        onclick: () => flip(index),
        ondblclick: () => show([index]),
      },
      ...(colour ? [spray.el("i", { style: `background:${colour(index)}` })] : []),
      String(name),
    ),
  );
  const several = (text, indices) => spray.el("button", { type: "button", class: "all", onclick: () => show(indices) }, text);
  const more = [several("all", [...names.keys()]), several("none", [])];
  return spray.el("fieldset", { "data-choice": title }, spray.el("legend", {}, title), ...buttons, ...more);
};

// What single plots let one choose.
const controls = (data, state, changed) => {
  const add = (id, ...selects) => {
    const host = spray.card(id);
    if (host) host.before(spray.el("div", { class: "controls" }, ...selects));
  };
  const measures = data.measures.map((measure, index) => [index, measure.unit ? `${measure.title}, ${measure.unit}` : measure.title]);
  const pick = (key) => (value) => {
    state[key] = Number(value);
    for (const select of document.querySelectorAll(`select[name=${key}]`)) select.value = value;
    changed();
  };
  const named = (key, label, options) => {
    const box = spray.select(label, options, pick(key));
    const select = box.querySelector("select");
    [select.name, select.value] = [key, state[key]];
    return box;
  };
  const workloads = () =>
    data.workloads.length
      ? [named("workload", "Workload", [[-1, "all"], ...data.workloads.map((name, index) => [index, name])])]
      : [];
  add("measure", named("measure", "Measure", measures), ...workloads());
  const numeric = data.axes
    .map((axis, index) => [index, axis.name])
    .filter(([index]) => data.axes[index].numbers && data.axes[index].values.length > 1);
  const along = numeric.length > 1 ? [named("axis", "Along", numeric)] : [];
  add("axis", named("measure", "Measure", measures), ...along, ...workloads());
  const either = (key, label, options) => spray.choices(label, options, (value) => ((state[key] = value), changed()));
  add("sizes", either("size", "Show", SLOWDOWNS), ...workloads());
  add("fct", either("log", "Axis of time", TIME_AXES), ...workloads());
  add("drops", either("drops", "Parts", PARTS));
};

const PARTS = [
  ["cause", "by cause"],
  ["layer", "by place"],
];

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
  if (!rowsOf.byLink)
    rowsOf.byLink = new Map(
      [...document.querySelectorAll("tbody a")].map((link) => [link.getAttribute("href"), link.closest("tr")]),
    );
  for (const run of data.runs) {
    const row = rowsOf.byLink.get(`${run.folder}/report.html`);
    if (row) row.hidden = !runs.has(run);
  }
};

// Runs by cell, and in it by balancer: [{ name, cell, balancers: [[balancer, runs]] }].
const cellsOf = (data, runs) => {
  const name = ({ condition, axes }) =>
    [data.conditions[condition], ...axes.map((value, axis) => `${data.axes[axis].name} ${data.axes[axis].values[value]}`)].join(
      ", ",
    );
  return spray.grouped(runs, (run) => run.cell).map(([cell, own]) => ({
    name: name(data.cells[cell]),
    cell: data.cells[cell],
    balancers: spray.grouped(own, (run) => run.balancer),
  }));
};
