// What all plots share: elements, numbers, colours, the tooltip, and the stretch of time that they show together.
"use strict";

// `plots` holds what each plot shows, by its id, for tests and for those who open the console.
const spray = { plots: {}, redraws: [] };

// Calls those of a list of [element, function] whose elements are still on the page, and forgets the others.
spray.each = (list, ...values) => {
  list.splice(0, list.length, ...list.filter(([element]) => element.isConnected));
  for (const [, call] of list) call(...values);
};

// What has the same number: [[number, all]], smallest first; `numberOf` gives it.
spray.grouped = (all, numberOf) => {
  const groups = new Map(all.map((one) => [numberOf(one), []]));
  all.forEach((one) => groups.get(numberOf(one)).push(one));
  return [...groups].sort(([a], [b]) => a - b);
};

// Makes an HTML element. Children may be elements or text; names from the data are always text.
spray.el = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
};

// Makes an SVG element.
spray.svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// A number with all the digits that the page has: `1,204.53`.
spray.exact = (value) =>
  value === null || value === undefined || Number.isNaN(value)
    ? "none"
    : value.toLocaleString("en", { maximumSignificantDigits: 6 });

// A number in few characters: `0.25`, `31.4`, `1,204`, `3.2M`.
spray.short = (value) => {
  const size = Math.abs(value);
  if (size >= 1e9) return trim(value / 1e9) + "G";
  if (size >= 1e6) return trim(value / 1e6) + "M";
  if (size >= 1e4) return trim(value / 1e3) + "k";
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 4 : 3 });
};

const trim = (value) => String(Number(value.toPrecision(3)));

// Bytes with the units that people type: `64 KiB`.
spray.bytes = (value) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(value, 1)) / 10), units.length - 1);
  return `${trim(value / 1024 ** power)} ${units[power]}`;
};

// `text` at most so many characters long.
spray.cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// The value of a colour of the style sheet, which depends on the theme.
spray.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const COLOURS = 10;

// The colour of series number `index`, as text for a style, and as a value for a canvas.
spray.colourName = (index) => `var(--c${index % COLOURS})`;
spray.colour = (index) => spray.css(`--c${index % COLOURS}`);

// Series beyond the colours are told apart by dashes.
spray.dash = (index) => [[], [6, 4], [2, 3]][Math.floor(index / COLOURS) % 3];

// A colour between nothing (0) and most (1), for heat maps; lighter means less on a light page, and more on a dark one.
spray.heat = () => {
  const stops = [0, 1, 2, 3, 4].map((stop) => rgb(spray.css(`--heat${stop}`)));
  return (share) => {
    const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = stops[low].map((part, i) => Math.round(part + (stops[low + 1][i] - part) * (at - low)));
    return `rgb(${mixed.join(",")})`;
  };
};

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

// The one tooltip: a title, and rows of colour, name and value.
spray.tip = {
  show(x, y, title, rows) {
    if (!this.box) document.body.append((this.box = spray.el("div", { id: "tip", role: "status" })));
    const row = ({ colour, name, value }) =>
      spray.el("tr", {}, mark(colour), spray.el("td", {}, name), spray.el("td", { class: "value" }, value));
    const mark = (colour) => spray.el("td", {}, colour ? spray.el("i", { style: `background:${colour}` }) : "");
    this.box.replaceChildren(spray.el("b", {}, title), spray.el("table", {}, ...rows.map(row)));
    this.box.style.display = "block";
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const right = x + 16 + width > innerWidth ? Math.max(x - 16 - width, 4) : x + 16;
    this.box.style.left = `${right}px`;
    this.box.style.top = `${Math.max(Math.min(y + 12, innerHeight - height - 4), 4)}px`;
  },
  hide() {
    if (this.box) this.box.style.display = "none";
  },
};

// The stretch of time that all plots over time of a page show: zooming into one zooms into all.
spray.time = {
  members: [],
  range: null,
  // Shows `range`, a pair of times, or all of the time if it is `null`.
  show(range) {
    if (String(range) === String(this.range)) return;
    this.range = range;
    spray.each(this.members, range);
  },
};

// Buttons that show and hide series. `flip` is told the index and whether it is shown now.
spray.legend = (series, flip) => {
  const button = ({ name, colour, hidden }, index) =>
    spray.el(
      "button",
      {
        type: "button",
        "aria-pressed": String(!hidden),
        title: "Show or hide",
        onclick(event) {
          const shown = event.currentTarget.getAttribute("aria-pressed") !== "true";
          event.currentTarget.setAttribute("aria-pressed", String(shown));
          flip(index, shown);
        },
      },
      spray.el("i", { style: `background:${colour}` }),
      name,
    );
  return spray.el("div", { class: "legend" }, ...series.map(button));
};

// A list to choose from; `options` are pairs of value and text.
spray.select = (label, options, onchange) =>
  spray.el(
    "label",
    { class: "select" },
    label + " ",
    spray.el(
      "select",
      { onchange: (event) => onchange(event.target.value) },
      ...options.map(([value, text]) => spray.el("option", { value }, text)),
    ),
  );

// The card of a plot that the page has a place for, shown from now on; `null` if it has none.
spray.card = (id) => {
  const card = document.getElementById(id);
  if (!card) return null;
  card.hidden = false;
  return card.querySelector(".body");
};

// Calls `draw` with the width of `host`, now and whenever it changes.
spray.sized = (host, draw) => {
  let last = 0;
  const look = () => {
    const width = Math.floor(host.clientWidth);
    if (width > 0 && width !== last) draw((last = width));
  };
  // In the next frame: drawing changes sizes again.
  new ResizeObserver(() => requestAnimationFrame(look)).observe(host);
  look();
};

// Buttons of which one is pressed; `options` are pairs of value and text.
spray.choices = (label, options, onchange) => {
  const press = (event, value) => {
    for (const button of box.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button === event.currentTarget));
    onchange(value);
  };
  const button = ([value, text], index) =>
    spray.el("button", { type: "button", "aria-pressed": String(index === 0), onclick: (event) => press(event, value) }, text);
  const box = spray.el("div", { class: "either", role: "group", "aria-label": label }, ...options.map(button));
  return box;
};
