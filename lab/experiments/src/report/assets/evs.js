// The life of a connection's entropy values: how many packets went with new, recycled or frozen ones, and which values these were.
"use strict";

// What the choices mean, and their colours.
const CHOICES = {
  chosen: ["chosen by the scheme's own rule", 8],
  explored: ["explored: a new value", 0],
  recycled: ["recycled: one that came back unmarked", 2],
  frozen: ["frozen on: one that is known to work", 1],
};

spray.evs = (host, data, overTime) => {
  const choices = data.choices.map((choice) => CHOICES[choice]);
  const body = spray.el("div");
  const show = (index) => {
    const { connection, begin_us, bin_us, packets, used, bands } = data.evs[index];
    const time = (at) => Number((begin_us + (at + 0.5) * bin_us).toPrecision(8));
    const x = used.map((_, at) => time(at));
    const there = choices.map(([name, colour], choice) => ({ name, colour, x, y: packets[choice], choice })).filter(({ y }) =>
      y.some((count) => count),
    );
    body.replaceChildren();
    const lines = spray.el("div");
    const map = spray.el("div");
    body.append(
      lines,
      spray.el("p", { class: "soft" }, `Each row: one of 64 bands of equal width of the entropy values of ${connection}.`),
      map,
    );
    spray.lines("ev-packets", lines, { ...overTime, legend: true, y: `packets in ${spray.exact(bin_us)} us (packets)`, series: there });
    const rows = bands.map(([band, kinds]) => ({
      name: `band ${band}`,
      values: [...kinds].map((kind) => (kind === "." ? null : Number(kind) + 1)),
    }));
    spray.heatmap("evs", map, {
      rows,
      bin: bin_us,
      begin: begin_us,
      most: 4,
      text: (value) => (value === null ? "no packet" : choices[value - 1][0]),
      names: choices,
      fill: (value) => spray.colour(choices[value - 1][1]),
      moments: data.moments,
      end: data.end_us,
      axis: "Bands of entropy values",
    });
  };
  const options = data.evs.map(({ connection }, index) => [index, connection]);
  if (options.length > 1)
    host.append(
      spray.el(
        "div",
        { class: "controls" },
        spray.select("Connection", options, (index) => show(Number(index))),
      ),
    );
  host.append(body);
  show(0);
};
