// The page of one run: which plots it has, and what they show.
"use strict";

spray.run = (data) => {
  const { moments, end_us } = data;
  const overTime = { x: "time (us)", moments, time: true, end: end_us };
  const draw = {
    goodput: (host) => spray.lines("goodput", host, { ...overTime, y: "goodput (Gb/s)", series: [{ ...data.goodput, colour: 0 }] }),
    topology: (host) => spray.topology("topology", host, data.topology),
    ports: (host) => ports(host, data, overTime),
    fct: (host) => {
      const plot = spray.el("div");
      const show = (log) => {
        plot.replaceChildren();
        const series = data.fct.map((line, colour) => ({ ...line, colour, steps: true }));
        spray.lines("fct", plot, { x: "completion time (us)", y: "share of flows (%)", top: 100, log, series });
      };
      host.append(
        spray.choices("Axis of time", TIME_AXES, show),
        plot,
      );
      show(0);
    },
    sizes: (host) => sizes(host, data.sizes),
    drops: (host) => dropped(host, data),
    evs: (host) => spray.evs(host, data, overTime),
    events: (host) => events(host, data, overTime),
  };
  for (const [id, plot] of Object.entries(draw)) {
    const host = spray.card(id);
    if (host) plot(host);
  }
};

// What plots of completion times let one choose: the base of their axis, 0 for none.
const TIME_AXES = [
  [0, "linear"],
  [10, "logarithmic"],
];

// Of all flows both measures; where there are several workloads a line for each, of the measure that is chosen.
const SLOWDOWNS = [
  ["p99", "99th percentile"],
  ["mean", "mean"],
];

const sizes = (host, groups) => {
  if (groups.length === 1) {
    const line = ([key, name], colour) => ({ name, colour, sizes: groups[0].sizes, key });
    return spray.sizes("sizes", host, [...SLOWDOWNS].reverse().map(line));
  }
  const plot = spray.el("div");
  const show = (key) => {
    plot.replaceChildren();
    spray.sizes("sizes", plot, groups.map((group, colour) => ({ ...group, colour, key })));
  };
  host.append(spray.choices("Show", SLOWDOWNS, show), plot);
  show("p99");
};

// Two measures of ports: what they are called, and how a value reads.
const MEASURES = {
  queue_kb: {
    name: "queue",
    axis: "longest queue (kB)",
    text: (value) => (value === null ? "no sample" : `${spray.exact(value)} kB`),
  },
  load: {
    name: "load",
    axis: "load (% of full rate)",
    text: (value) => (value === null ? "no sample" : `${spray.exact(value)} %`),
  },
};

// A heat map of all ports, and lines of those that are picked in it.
const ports = (host, data, overTime) => {
  const { rows, bin_us: bin, shown } = data.ports;
  const picked = new Set(shown);
  let measure = "queue_kb";
  const values = (key) => rows.map((row) => ({ name: row.name, values: row[key] }));
  const most = (key) => Math.max(...rows.flatMap((row) => row[key]), key === "load" ? 100 : 1);
  const ramp = spray.el("div");
  const map = spray.el("div");
  const lines = spray.el("div");
  const hint = spray.el("p", { class: "soft" }, "Below: the ports whose names are bold. Click a row to add it or take it away.");
  const redraw = spray.choices(
    "show",
    Object.entries(MEASURES).map(([key, { name }]) => [key, name]),
    (key) => {
      measure = key;
      change({ rows: values(key), most: most(key), text: MEASURES[key].text });
      refresh();
    },
  );
  host.append(redraw, ramp, map, hint, lines);
  const refresh = () => {
    ramp.replaceChildren(spray.ramp(spray.short(most(measure)), (value) => `${value} ${measure === "load" ? "%" : "kB"}`));
    lines.replaceChildren();
    const series = [...picked]
      .sort((a, b) => a - b)
      .map((row, colour) => ({
        name: rows[row].name,
        colour,
        x: rows[row][measure].map((_, at) => Number(((at + 0.5) * bin).toPrecision(8))),
        y: rows[row][measure],
      }));
    if (series.length)
      spray.lines("port-lines", lines, {
        ...overTime,
        y: MEASURES[measure].axis,
        series,
        legend: true,
        top: measure === "load" ? 100 : 0,
      });
  };
  const change = spray.heatmap("ports", map, {
    rows: values(measure),
    bin,
    most: most(measure),
    text: MEASURES[measure].text,
    moments: data.moments,
    end: data.end_us,
    picked,
    onpick: () => refresh(),
    axis: "Ports",
  });
  refresh();
};

// Slowdown by size of message; `lines` are [{ name, colour, sizes, key }]. Bars where all messages are of one size.
spray.sizes = (id, host, lines) => {
  const all = new Set(lines.flatMap((line) => line.sizes.map((size) => size.up_to_bytes)));
  if (!all.size) return host.append(spray.el("p", { class: "soft" }, "No flow completed."));
  if (all.size < 2) {
    const bars = lines
      .filter((line) => line.sizes.length)
      .map(({ name, colour, sizes, key }) => ({ name, colour, value: sizes[0][key], note: `${sizes[0].flows} flows` }));
    const title = `messages of up to ${spray.bytes([...all][0])}`;
    spray.bars(id, host, { groups: [{ title, bars }], unit: "times its time on an idle fabric", label: "slowdown (times)" });
    return;
  }
  const series = lines.map(({ name, colour, sizes, key }) => ({
    name,
    colour,
    points: true,
    x: sizes.map((size) => size.up_to_bytes),
    y: sizes.map((size) => size[key]),
  }));
  spray.lines(id, host, {
    x: "size of message, at most",
    y: "slowdown (times)",
    log: 2,
    xText: spray.bytes,
    series,
    top: 1,
    legend: true,
  });
};

const dropped = (host, data) => {
  const causes = spray.causes(data);
  const part = (count, cause) => ({ name: causes[cause][0], colour: causes[cause][1], value: count });
  const bars = (places) => places.map(({ name, counts }) => ({ name, parts: counts.map(part) }));
  const more = data.more_places ? [spray.el("p", { class: "soft" }, `${data.more_places} more ports in ports.csv.`)] : [];
  const used = causes.filter((_, cause) => data.places.some((place) => place.counts[cause]));
  host.append(spray.key(used));
  const groups = [{ title: "by port", bars: bars(data.places) }];
  if (data.layers.length > 1) groups.unshift({ title: "by layer", bars: bars(data.layers) });
  spray.bars("drops", host, { groups, unit: "frames" });
  host.append(...more);
};

// A dot per event, a row per kind.
const events = (host, data, overTime) => {
  const kinds = [...data.events].reverse();
  const series = kinds.map(({ kind, times }, row) => ({
    name: kind,
    colour: data.events.length - 1 - row,
    points: "only",
    x: times,
    y: times.map(() => row),
  }));
  spray.lines("events", host, {
    ...overTime,
    y: "event",
    rows: kinds.map(({ kind }) => kind),
    yText: () => "",
    series: series,
    height: 60 + 34 * kinds.length,
  });
};
