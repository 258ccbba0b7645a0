// Plots as files for papers: SVG on white with black text, a column wide, with the plot's data in it as CSV; and the CSV alone.
"use strict";

// Lengths are in points. Text along axes has 7, the axes' own names 8.
const POINTS_PER_MM = 72 / 25.4;
const TEXT = 7;
const NAME = 8;
const FONT = "Helvetica, Arial, sans-serif";

// Buttons beside the plot `id` that save it. `draw` makes it so wide, as { height, parts }; `table` gives its rows, the names of the columns
// first. What comes back is for `spray.plots`.
spray.saves = (id, host, draw, table) => {
  const csv = () => table().map((row) => row.map(field).join(",") + "\n").join("");
  const svg = (mm = 84) => inLight(() => picture(id, mm, draw(mm * POINTS_PER_MM), csv()));
  const file = `${id.replace(/[^\w.=-]+/g, "-")}.`;
  const button = (kind, title, onclick) => spray.el("button", { type: "button", title, onclick }, kind);
  const saves = [
    button("SVG", "Save as SVG, 84 mm wide; with Shift 176 mm", ({ shiftKey }) => download(`${file}svg`, svg(shiftKey ? 176 : 84))),
    button("CSV", "Save the data", () => download(`${file}csv`, csv())),
  ];
  host.append(spray.el("div", { class: "saves" }, ...saves));
  return { svg, csv };
};

const field = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};

const download = (name, text) => {
  const address = URL.createObjectURL(new Blob([text], { type: name.endsWith("svg") ? "image/svg+xml" : "text/csv" }));
  spray.el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};

// What `draw` gives with the colours of the light theme.
const inLight = (draw) => {
  const { dataset } = document.documentElement;
  const before = dataset.theme;
  dataset.theme = "light";
  try {
    return draw();
  } finally {
    if (before) dataset.theme = before;
    else delete dataset.theme;
  }
};

const picture = (id, mm, { height, parts }, csv) => {
  const width = at(mm * POINTS_PER_MM);
  const size = { width: `${mm}mm`, height: `${at(height / POINTS_PER_MM)}mm`, viewBox: `0 0 ${width} ${at(height)}` };
  const svg = spray.svg(
    "svg",
    { ...size, "font-family": FONT, "font-size": TEXT },
    spray.svg("title", {}, id),
    spray.svg("metadata", {}, "\n" + csv),
    spray.svg("rect", { width, height: at(height), fill: "#fff" }),
    ...parts,
  );
  return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(svg) + "\n";
};

const at = (value) => Number(value.toFixed(2));
const path = (points) => points.map(([x, y]) => `${at(x)},${at(y)}`).join(" ");
const ruler = document.createElement("canvas").getContext("2d");
const room = (text, size = TEXT) => ((ruler.font = `${size}px ${FONT}`), ruler.measureText(text).width);
// `text` in so much room.
const fit = (text, most, size = TEXT) => {
  let shown = text;
  while (room(shown, size) > most && shown.length > 2) shown = shown.slice(0, -2) + "…";
  return shown;
};
const word = (x, y, text, more = {}) => spray.svg("text", { x: at(x), y: at(y), ...more }, text);
const rule = (x1, y1, x2, y2, more = {}) =>
  spray.svg("line", { x1: at(x1), y1: at(y1), x2: at(x2), y2: at(y2), stroke: "#000", "stroke-width": 0.5, ...more });

// About so many round values between two.
const rounds = (low, high, many) => {
  const rough = (high - low) / many || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.max(Math.floor(high / step + 1e-9) - first + 1, 0);
  return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(10)));
};

// The names of series, [{ name, colour, dash, line }], above a plot, in as many rows as they need.
const names = (all, width) => {
  let [x, y] = [0, TEXT];
  const parts = all.flatMap(({ name, colour, dash = [], line }) => {
    const text = fit(name, width - 16);
    if (x > 0 && x + 13 + room(text) > width) [x, y] = [0, y + 9];
    const [from, middle] = [x, y - 2.5];
    x += 13 + room(text) + 9;
    const mark = line
      ? rule(from, middle, from + 10, middle, { stroke: colour, "stroke-width": 1.4, "stroke-dasharray": dash.join(" ") || "none" })
      : spray.svg("rect", { x: at(from + 2), y: at(middle - 3), width: 6, height: 6, fill: colour });
    return [mark, word(from + 13, y, text)];
  });
  return { parts, height: all.length ? y + 4 : 2 };
};

// What the colours of heat mean, above a plot.
const ramp = (least, most) => {
  const heat = spray.heat();
  const stops = [0, 25, 50, 75, 100].map((offset) => spray.svg("stop", { offset: `${offset}%`, "stop-color": heat(offset / 100) }));
  const bar = spray.svg("rect", { x: at(room(least) + 4), y: 1.5, width: 60, height: 6, fill: "url(#heat)" });
  const parts = [spray.svg("linearGradient", { id: "heat" }, ...stops), word(0, TEXT, least), bar, word(room(least) + 68, TEXT, most)];
  return { parts, height: TEXT + 4 };
};

// The x axis below a box, with `ticks` as pairs of value and text, and its name.
const below = ({ left, right, bottom }, ticks, xOf, label) => [
  rule(left, bottom, right, bottom),
  ...ticks.flatMap(([value, text]) => [
    rule(xOf(value), bottom, xOf(value), bottom + 2.5),
    word(Math.min(xOf(value), right + 8 - room(text) / 2), bottom + 10, text, { "text-anchor": "middle" }),
  ]),
  word((left + right) / 2, bottom + 20, label, { "text-anchor": "middle", "font-size": NAME }),
];

const BELOW_AXIS = 24;
// Dashed verticals where something failed or came back.
const failures = (moments, { top, bottom }, xOf, [from, to]) =>
  moments
    .filter(({ at_us }) => at_us >= from && at_us <= to)
    .map(({ at_us, what }) => {
      const line = rule(xOf(at_us), top, xOf(at_us), bottom, { "stroke-dasharray": "3 2", stroke: "#555" });
      line.append(spray.svg("title", {}, what));
      return line;
    });

// Lines, or dots in rows; as `spray.lines` shows them now, of which `series` are shown.
spray.saves.lines = (width, { options, series, scales }) => {
  const { log = 0, rows, moments = [] } = options;
  const [[x0, x1], [y0, y1]] = [scales.x, scales.y].map(({ min, max }) => [min ?? 0, max ?? 1]);
  const looks = series.map((one) => ({ ...one, colour: spray.colour(one.colour), dash: spray.dash(one.colour), line: true }));
  const key = names(rows || (series.length < 2 && !options.legend) ? [] : looks, width);
  const marks = rows ? rows.map((name, row) => [row, name]) : rounds(y0, y1, 6).map((value) => [value, spray.short(value)]);
  const high = rows ? rows.length * 14 : Math.max(width > 300 ? 160 : 112, room(options.y, NAME) + 6);
  const left = (rows ? 0 : NAME + 4) + Math.max(...marks.map(([, text]) => room(text)), 6) + 6;
  const box = { left, right: width - 9, top: key.height + 3, bottom: key.height + 3 + high };
  const share = log ? (x) => Math.log(x / x0) / Math.log(x1 / x0) : (x) => (x - x0) / (x1 - x0);
  const xOf = (x) => left + share(x) * (box.right - left);
  const yOf = (y) => box.bottom - ((y - y0) / (y1 - y0)) * high;
  const xText = log === 2 ? options.xText : spray.short;
  const splits = log ? roundSplits({ scales: { x: { min: x0, max: x1 } }, width: (box.right - left) * 2 }, log) : rounds(x0, x1, width / 34);
  const border = { x: at(left), y: at(box.top - 2), width: at(box.right - left + 2), height: at(high + 4) };
  // Places alike have the same name, so that several files may go into one.
  const clip = `inside-${Object.values(border).join("-")}`;
  const bands = looks.filter((one) => one.band).map((one) => outline(one, xOf, yOf));
  const curves = looks.flatMap((one) => curve(one, xOf, yOf));
  const upright = { transform: `translate(${NAME} ${at((box.top + box.bottom) / 2)}) rotate(-90)` };
  return {
    height: box.bottom + BELOW_AXIS,
    parts: [
      spray.svg("clipPath", { id: clip }, spray.svg("rect", border)),
      ...key.parts,
      ...marks.flatMap(([value, text]) => [
        rule(left, yOf(value), box.right, yOf(value), { stroke: "#ddd" }),
        rule(left - 2.5, yOf(value), left, yOf(value)),
        word(left - 4, yOf(value) + 2.5, text, { "text-anchor": "end" }),
      ]),
      spray.svg("g", { "clip-path": `url(#${clip})` }, ...bands, ...failures(moments, box, xOf, [x0, x1]), ...curves),
      rule(left, box.top, left, box.bottom),
      ...below(box, splits.map((value) => [value, xText(value)]), xOf, options.x),
      ...(rows ? [] : [word(0, 0, options.y, { ...upright, "text-anchor": "middle", "font-size": NAME })]),
    ],
  };
};

const outline = ({ band, colour }, xOf, yOf) =>
  spray.svg("polygon", { points: path(band.x.map((x, index) => [xOf(x), yOf(band.y[index])])), fill: colour, "fill-opacity": 0.18 });

// A series: its line, and its dots as lines of no length with round ends.
const curve = ({ name, colour, dash, x, y, steps, points }, xOf, yOf) => {
  const there = x.map((value, index) => [value, y[index]]).filter(([a, b]) => a !== null && b !== null && !Number.isNaN(xOf(a)));
  const bends = there.flatMap(([a, b], index) => (steps && index ? [[a, there[index - 1][1]], [a, b]] : [[a, b]]));
  const places = (all) => all.map(([a, b]) => [xOf(a), yOf(b)]);
  const look = { fill: "none", stroke: colour, "stroke-linejoin": "round" };
  const d = places(there).map(([a, b]) => `M${at(a)} ${at(b)}h0`);
  const round = { "stroke-linecap": "round", "stroke-width": 3, class: points === "only" ? "series" : "dots" };
  const dots = spray.svg("path", { ...look, ...round, d: d.join("") });
  const dashes = { "stroke-width": 1, "stroke-dasharray": dash.join(" ") || "none", class: "series" };
  const line = spray.svg("polyline", { ...look, ...dashes, points: path(places(bends)) }, spray.svg("title", {}, name));
  return points === "only" ? [dots] : points ? [line, dots] : [line];
};

// Groups of bars below each other, on one scale; `most` is its end, `end` how far an interval is drawn.
spray.saves.bars = (width, { groups, label, most, total, end }) => {
  const all = groups.flatMap(({ bars }) => bars);
  const used = new Map(all.flatMap(({ parts }) => parts || []).filter(({ value }) => value).map(({ name, colour }) => [name, colour]));
  const key = names([...used].map(([name, colour]) => ({ name, colour: spray.colour(colour) })), width);
  const text = (bar) => (Number.isFinite(total(bar)) ? barText(bar, total(bar)) : "none");
  const left = Math.min(Math.max(...all.map(({ name }) => room(name)), 0), width * 0.36) + 5;
  const right = width - Math.max(...all.map((bar) => room(text(bar))), 8) - 6;
  const xOf = (value) => left + (value / most) * (right - left);
  let y = key.height;
  const rect = (from, value, { colour, completed }) => {
    const place = { x: at(xOf(from)), y: at(y + 1.5), width: at(xOf(value) - left), height: 7 };
    const look = { fill: spray.colour(colour), "fill-opacity": completed < 100 ? 0.5 : 1, class: "series" };
    return spray.svg("rect", { ...place, ...look });
  };
  const row = (bar) => {
    let sum = 0;
    const parts = (bar.parts || [bar]).filter(({ value }) => value > 0);
    const drawn = parts.map((part) => rect((sum += part.value) - part.value, part.value, part));
    const marks = bar.interval ? whisker(bar.interval, end(bar), y + 5, xOf) : [];
    const words = [
      word(left - 4, y + 7.5, fit(bar.name, left - 5), { "text-anchor": "end" }),
      word(width - 1, y + 7.5, text(bar), { "text-anchor": "end" }),
    ];
    y += 10;
    return [...drawn, ...marks, ...words];
  };
  const parts = groups.flatMap(({ title, bars }) => {
    const head = title ? [word(0, (y += 10), fit(title, width, NAME), { "font-size": NAME })] : [];
    const top = (y += 2);
    return [...head, ...bars.flatMap(row), rule(left, top, left, y)];
  });
  const ticks = rounds(0, most, width / 40).map((value) => [value, spray.short(value)]);
  const axis = below({ left, right, bottom: y + 2 }, ticks, xOf, label);
  return { height: y + 2 + BELOW_AXIS, parts: [...key.parts, ...parts, ...axis] };
};

// An interval that may be cut off at `to`; then it has no mark there.
const whisker = ([low, high], to, y, xOf) => {
  const ends = [xOf(Math.max(low, 0)), ...(to < high ? [] : [xOf(to)])];
  return low < high ? [rule(ends[0], y, xOf(to), y), ...ends.map((x) => rule(x, y - 2, x, y + 2))] : [];
};

// Shades of a heat map: those alike are one path.
const SHADES = 48;

spray.saves.heatmap = (width, state, [from, to]) => {
  const { rows, begin, bin, most } = state;
  const heat = spray.heat();
  const fill = state.fill || ((value) => heat(most > 0 ? Math.round((value / most) * SHADES) / SHADES : 0));
  const key = state.names
    ? names(state.names.map(([name, colour]) => ({ name, colour: spray.colour(colour) })), width)
    : ramp(state.text(0), state.text(most));
  const high = Math.min(Math.max(200 / Math.max(rows.length, 1), 3.5), 9);
  const left = Math.min(Math.max(...rows.map(({ name }) => room(name)), 0), width * 0.36) + 6;
  const box = { left, right: width - 9, top: key.height + 2, bottom: key.height + 2 + rows.length * high };
  const xOf = (time) => left + ((time - from) / (to - from)) * (box.right - left);
  const edge = (index) => at(xOf(Math.min(Math.max(begin + index * bin, from), to)));
  const shades = shaded(rows, fill, edge, (row) => at(box.top + row * high), at(high * 0.94));
  const ticks = rounds(from, to, width / 34).map((value) => [value, spray.short(value)]);
  const ground = { x: at(left), y: at(box.top), width: at(box.right - left), height: at(box.bottom - box.top), fill: spray.css("--heat0") };
  const label = ({ name }, row) =>
    row % Math.ceil(TEXT / high) ? [] : [word(left - 4, box.top + (row + 0.5) * high + 2.5, fit(name, left - 5), { "text-anchor": "end" })];
  return {
    height: box.bottom + BELOW_AXIS,
    parts: [
      ...key.parts,
      spray.svg("rect", ground),
      ...[...shades].map(([fill, d]) => spray.svg("path", { d, fill, class: "series" })),
      ...failures(state.moments || [], box, xOf, [from, to]),
      ...rows.flatMap(label),
      ...below(box, ticks, xOf, "time (us)"),
    ],
  };
};

// The outlines of what has each colour.
const shaded = (rows, fill, edge, yOf, high) => {
  const shades = new Map();
  rows.forEach(({ values }, row) => {
    for (let first = 0, next; first < values.length; first = next) {
      for (next = first + 1; next < values.length && values[next] === values[first]; ) next += 1;
      const [a, b, colour] = [edge(first), edge(next), values[first] && fill(values[first])];
      if (colour && a < b) shades.set(colour, `${shades.get(colour) || ""}M${a} ${yOf(row)}H${b}v${high}H${a}z`);
    }
  });
  return shades;
};

// The fabric as the page draws it, at a size at which its names have 7 points.
spray.saves.topology = (width, { topology, step, broken }) => {
  const { nodes, links, times } = topology;
  const scale = TEXT / 12;
  const drawing = spray.el("div");
  colour(drawFabric(drawing, width / scale, { nodes, links }), links, step, broken);
  const [svg] = drawing.children;
  const looks = {
    ".node": { fill: "#fff", stroke: "#000" },
    ".label, .hosts": { "text-anchor": "middle", "font-size": 12, fill: "#000" },
    ".cross": { stroke: spray.css("--bad"), "stroke-width": 2.5, fill: "none" },
  };
  svg.querySelectorAll(".reach, .cross[visibility=hidden]").forEach((one) => one.remove());
  for (const [which, look] of Object.entries(looks))
    for (const one of svg.querySelectorAll(which)) for (const [key, value] of Object.entries(look)) one.setAttribute(key, value);
  svg.querySelectorAll("svg > line").forEach((one) => one.setAttribute("class", "series"));
  const key = ramp("0 %", "100 % load");
  const time = `${spray.exact(times[step])} to ${spray.exact(times[step + 1])} us`;
  const group = spray.svg("g", { transform: `translate(0 ${key.height + 11}) scale(${at(scale * 1e4) / 1e4})` }, ...svg.childNodes);
  const height = key.height + 11 + svg.getAttribute("height") * scale;
  return { height, parts: [...key.parts, word(0, key.height + 6, time), group] };
};
