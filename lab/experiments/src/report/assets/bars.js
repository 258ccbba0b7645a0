// Bars of HTML below each other, in groups: they wrap, can be read aloud, and fit any width.
"use strict";

// Draws groups of bars with a common scale. `groups` are [{ title, bars: [{ name, colour, parts, value, interval, note }] }]: a bar is
// either `value` with the interval around it, or `parts`, [{ name, colour, value }], end to end. `label` names the axis of a saved plot.
spray.bars = (id, host, { groups, unit, label = unit }) => {
  const total = (bar) => (bar.parts ? bar.parts.reduce((sum, part) => sum + part.value, 0) : bar.value);
  // An interval of few runs may be far longer than its bar: it is drawn to three times the value.
  const end = ({ value, interval }) => Math.min(interval[1], 3 * value);
  const reach = (bar) => Math.max(total(bar) || 0, bar.interval ? end(bar) : 0);
  const most = Math.max(...groups.flatMap((group) => group.bars.map(reach)), 0) || 1;
  const percent = (value) => `${(100 * value) / most}%`;
  const part = ({ colour, value, completed }) =>
    spray.el("span", { class: completed < 100 ? "bar partly" : "bar", style: `width:${percent(value)};background:${spray.colourName(colour)}` });
  const hasInterval = ({ interval }) => interval && interval[0] < interval[1];
  const whisker = (bar) => {
    if (!hasInterval(bar)) return [];
    const low = Math.max(bar.interval[0], 0);
    return [spray.el("span", { class: "whisker", style: `left:${percent(low)};width:${percent(Math.max(end(bar) - low, 0))}` })];
  };
  const range = ({ interval }, digits) => `${digits(interval[0])} to ${digits(interval[1])}`;
  const rows = (bar) =>
    (bar.parts || [])
      .filter((own) => own.value)
      .map((own) => ({ colour: spray.colourName(own.colour), name: own.name, value: `${spray.exact(own.value)} ${unit}` }));
  const hover = (bar) => (event) => {
    const least = bar.isBound ? "> " : "";
    const whole = hasInterval(bar) ? `${spray.exact(bar.value)} (${range(bar, spray.exact)}) ${unit}` : `${least}${spray.exact(total(bar))} ${unit}`;
    spray.tip.show(event.clientX, event.clientY, bar.name, [
      ...rows(bar),
      { name: bar.parts ? "in all" : bar.note || "", value: whole },
    ]);
  };
  const line = (bar) => {
    const isThere = total(bar) !== null && !Number.isNaN(total(bar));
    const drawn = isThere ? (bar.parts || [bar]).filter((own) => own.value > 0).map(part) : [];
    return spray.el(
      "div",
      { class: "line", onpointermove: isThere ? hover(bar) : () => spray.tip.hide(), onpointerleave: () => spray.tip.hide() },
      spray.el("span", { class: "name", title: bar.name }, bar.name),
      spray.el("span", { class: "track" }, ...drawn, ...whisker(bar)),
      spray.el(
        "span",
        { class: "number" },
        isThere ? barText(bar, total(bar)) + (hasInterval(bar) ? ` (${range(bar, spray.short)})` : "") : "none",
      ),
    );
  };
  const group = ({ title, bars }) =>
    spray.el("div", { class: "group" }, ...(title ? [spray.el("h3", {}, title)] : []), ...bars.map(line));
  host.append(
    spray.el("div", { class: groups.length > 1 ? "bars many" : "bars" }, ...groups.map(group)),
    spray.el("p", { class: "unit" }, unit),
  );
  spray.plots[id] = {
    ...spray.saves(
      id,
      host,
      (width) => spray.saves.bars(width, { groups, label, most, total, end }),
      () => barRows(groups, label),
    ),
    groups: () => groups,
  };
};

// The value of a bar: `> 587, 17.3 % completed` where it is a lower bound.
const barText = ({ isBound, completed }, value) =>
  (isBound ? "> " : "") + spray.short(value) + (completed < 100 ? `, ${completed} % completed` : "");

// The rows of their CSV; what did not complete stands in bars of values only.
const barRows = (groups, unit) => {
  const hasShares = groups.some(({ bars }) => bars.some(({ completed }) => completed !== undefined));
  const row = (title, bar, part) => [
    title,
    bar.name,
    part.name,
    part.value,
    ...(bar.interval || ["", ""]),
    ...(hasShares ? [Boolean(bar.isBound), bar.completed] : []),
  ];
  return [
    ["group", "bar", "part", unit, "low", "high", ...(hasShares ? ["lower bound", "completed (%)"] : [])],
    ...groups.flatMap(({ title, bars }) =>
      bars.flatMap((bar) => (bar.parts || [{ name: "", value: bar.value }]).map((part) => row(title, bar, part))),
    ),
  ];
};

// The names of the parts of bars, with their colours.
spray.key = (names) =>
  spray.el(
    "div",
    { class: "key" },
    ...names.map(([name, colour]) =>
      spray.el("span", {}, spray.el("i", { style: `background:${spray.colourName(colour)}` }), name),
    ),
  );

// What the causes of losses are called, and their colours.
const CAUSES = {
  drops_queue: ["queue full", 1],
  drops_link: ["link failed", 3],
  drops_random: ["random loss", 4],
  drops_ttl: ["TTL ran out", 7],
  trims: ["trimmed", 5],
};

// The same in the order of the data.
spray.causes = (data) => data.causes.map((cause) => CAUSES[cause]);
