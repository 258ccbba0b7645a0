// A heat map: a row per port or entropy value, a column per bin of time. A click on a row picks it; dragging zooms into time.
"use strict";

// Draws into `host`. `options`:
//   rows       [{ name, values }], all with as many values; `null` is no value
//   bin, begin length of a bin in us, and when the first begins; `end` is how far the axis goes
//   most       the value of the strongest colour
//   text       turns a value into text; `fill`, if given, turns it into a colour, and `names` are those of values from 1
//   moments    [{ at_us, what }]
//   picked     a Set of row numbers; `onpick` is called after it has changed
//   axis       what the rows are
spray.heatmap = (id, host, options) => {
  const state = { begin: 0, ...options, range: spray.time.range, width: 0, at: null };
  const canvas = spray.el("canvas", {
    tabindex: "0",
    role: "img",
    "aria-label": `${options.axis} over time. Arrow keys move over it${options.onpick ? ", Enter picks a row" : ""}.`,
  });
  host.append(canvas);
  const rows = () => state.rows.length;
  const bins = () => (rows() ? state.rows[0].values.length : 0);
  const full = () => [0, state.end || state.begin + bins() * state.bin];
  const draw = () => state.width && paint(canvas, state, full());
  spray.sized(host, (width) => {
    state.width = width;
    draw();
  });
  spray.redraws.push([canvas, draw]);
  const zoom = (range) => {
    state.range = range;
    draw();
  };
  spray.time.members.push([canvas, zoom]);

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const { left, height, top } = state.layout;
    const [from, to] = state.range || full();
    const time = from + ((event.clientX - box.left - left) / (state.width - left - RIGHT)) * (to - from);
    const row = Math.floor((event.clientY - box.top - top) / height);
    return { time, row, bin: Math.floor((time - state.begin) / state.bin) };
  };
  const tell = ({ row, bin }, x, y) => {
    if (row < 0 || row >= rows() || bin < 0 || bin >= bins()) return spray.tip.hide();
    const { name, values } = state.rows[row];
    const times = `${spray.exact(state.begin + bin * state.bin)} to ${spray.exact(state.begin + (bin + 1) * state.bin)} us`;
    spray.tip.show(x, y, name, [{ name: times, value: state.text(values[bin]) }]);
  };
  const pick = (row) => {
    if (!state.onpick || row < 0 || row >= rows()) return;
    if (!state.picked.delete(row)) state.picked.add(row);
    draw();
    state.onpick();
  };
  let start = null;
  canvas.addEventListener("pointerdown", (event) => (start = { x: event.clientX, time: place(event).time }));
  canvas.addEventListener("pointermove", (event) => tell(place(event), event.clientX, event.clientY));
  canvas.addEventListener("pointerleave", () => spray.tip.hide());
  canvas.addEventListener("pointerup", (event) => {
    if (!start) return;
    const { time, row } = place(event);
    const [from, to] = full();
    if (Math.abs(event.clientX - start.x) < 5) pick(row);
    else spray.time.show([Math.max(Math.min(time, start.time), from), Math.min(Math.max(time, start.time), to)]);
    start = null;
  });
  canvas.addEventListener("dblclick", () => spray.time.show(null));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Enter" && state.at) return pick(state.at.row);
    if (!by) return;
    event.preventDefault();
    const { row, bin } = state.at || { row: 0, bin: -by[1] };
    state.at = { row: clamp(row + by[0], rows()), bin: clamp(bin + by[1], bins()) };
    const box = canvas.getBoundingClientRect();
    const [from, to] = state.range || full();
    const x = (state.begin + (state.at.bin + 0.5) * state.bin - from) / (to - from);
    tell(
      state.at,
      box.left + state.layout.left + x * (state.width - state.layout.left - RIGHT),
      box.top + state.layout.top + state.at.row * state.layout.height,
    );
  });
  canvas.addEventListener("blur", () => spray.tip.hide());
  const saves = spray.saves(
    id,
    host,
    (width) => spray.saves.heatmap(width, state, state.range || full()),
    () => heatRows(state),
  );
  spray.plots[id] = { ...saves, rows: () => state.rows, most: () => state.most };
  // Shows something else: any of the options.
  return (changed) => {
    Object.assign(state, changed);
    draw();
  };
};

// The rows of its CSV: times in the first one, names in the first column.
const heatRows = ({ rows, axis, begin, bin, names }) => [
  [`${axis}; columns: from so many us`, ...(rows[0] || { values: [] }).values.map((_, index) => Number((begin + index * bin).toPrecision(8)))],
  ...rows.map(({ name, values }) => [name, ...values.map((value) => (names && value ? names[value - 1][0].split(/[ :]/)[0] : value))]),
];

const clamp = (value, below) => Math.min(Math.max(value, 0), below - 1);

// Room at the right of the map, and below it for the axis.
const RIGHT = 20;
const BELOW = 40;

const paint = (canvas, state, full) => {
  const { rows, width, bin, begin, picked } = state;
  const height = Math.min(Math.max(Math.floor(560 / Math.max(rows.length, 1)), 11), 20);
  const size = Math.min(height - 1, 12);
  const ctx = canvas.getContext("2d");
  ctx.font = `bold ${size}px system-ui, sans-serif`;
  const most = Math.min(width * 0.34, 180);
  const left = Math.min(Math.max(...rows.map((row) => ctx.measureText(row.name).width)) + 12, most);
  const top = 4;
  state.layout = { left, height, top };
  const below = top + rows.length * height;
  canvas.width = width * devicePixelRatio;
  canvas.height = (below + BELOW) * devicePixelRatio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${below + BELOW}px`;
  ctx.scale(devicePixelRatio, devicePixelRatio);
  const [from, to] = state.range || full;
  const right = width - RIGHT;
  const xOf = (time) => left + ((time - from) / (to - from)) * (right - left);
  const heat = spray.heat();
  const fill = state.fill || ((value) => heat(state.most > 0 ? value / state.most : 0));

  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, right - left, below - top);
  ctx.clip();
  ctx.fillStyle = spray.css("--heat0");
  ctx.fillRect(left, top, right - left, below - top);
  rows.forEach(({ values }, row) => {
    const first = Math.max(Math.floor((from - begin) / bin), 0);
    const last = Math.min(Math.ceil((to - begin) / bin), values.length);
    for (let at = first; at < last; at++) {
      if (values[at] === null || values[at] === 0) continue;
      ctx.fillStyle = fill(values[at]);
      const x = xOf(begin + at * bin);
      ctx.fillRect(x, top + row * height, xOf(begin + (at + 1) * bin) - x + 0.6, height - 1);
    }
  });
  ctx.setLineDash([5, 4]);
  ctx.strokeStyle = spray.css("--ink");
  for (const { at_us } of state.moments || []) {
    ctx.beginPath();
    ctx.moveTo(xOf(at_us), top);
    ctx.lineTo(xOf(at_us), below);
    ctx.stroke();
  }
  ctx.restore();

  ctx.font = `${size}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  rows.forEach(({ name }, row) => {
    ctx.fillStyle = spray.css(picked && picked.has(row) ? "--ink" : "--soft");
    ctx.font = `${picked && picked.has(row) ? "bold " : ""}${size}px system-ui, sans-serif`;
    let shown = name;
    while (ctx.measureText(shown).width > left - 10 && shown.length > 4) shown = shown.slice(0, -2) + "…";
    ctx.fillText(shown, left - 6, top + (row + 0.5) * height);
  });
  timeAxis(ctx, { from, to, below, xOf, width });
};

// Ticks at round times, and the axis's name.
const timeAxis = (ctx, { from, to, below, xOf, width }) => {
  ctx.font = "12px system-ui, sans-serif";
  ctx.fillStyle = spray.css("--soft");
  ctx.textAlign = "center";
  for (const at of rounds(from, to, Math.max(width / 110, 2))) {
    ctx.fillRect(xOf(at), below, 1, 4);
    ctx.fillText(spray.short(at), xOf(at), below + 12);
  }
  ctx.fillText("time (us)", (xOf(from) + xOf(to)) / 2, below + 30);
};

// What the colours of a heat map mean, from nothing to `most`.
spray.ramp = (most, text) =>
  spray.el("div", { class: "ramp" }, spray.el("span", {}, text(0)), spray.el("i", {}), spray.el("span", {}, text(most)));
