// The plots that compare runs: of each group of runs the means over seeds, with their 95 % intervals.
"use strict";

// Most groups of bars, and most plots of lines, that are drawn at once.
const GROUPS = 24;
const PLOTS = 12;

// The mean of some values, and its 95 % interval as in sweep.json, or `null` where there is one value only, or where the mean is a lower bound.
const spread = (data, values, isBound = false) => {
  const own = values.filter((value) => value !== null && value !== undefined);
  const n = own.length;
  if (!n) return { mean: null, interval: null };
  const mean = own.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2 || isBound) return { mean, interval: null, isBound };
  const sd = Math.sqrt(own.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1));
  const half = (data.t95[Math.min(n - 2, data.t95.length - 1)] * sd) / Math.sqrt(n);
  if (own.some((value) => value < 0)) return { mean, interval: [mean - half, mean + half] };
  const factor = half > 0 ? Math.exp(half / mean) : 1;
  return { mean, interval: [mean / factor, mean * factor] };
};

const valueOf = (state) => (run) =>
  state.workload < 0 ? run.values[state.measure] : run.workloads[state.workload] && run.workloads[state.workload][state.measure];

// Whether the chosen measure of a run is a lower bound, since not all of its flows completed.
const isBoundOf = (state) => (run) => {
  const bounds = state.workload < 0 ? run.bounds : run.workload_bounds && run.workload_bounds[state.workload];
  return Boolean(bounds) && bounds.includes(state.measure);
};

const spreadOf = (data, runs, state) => spread(data, runs.map(valueOf(state)), runs.some(isBoundOf(state)));

// The share of the flows of some runs that completed, never rounded up to all, in per cent.
const completedOf = (runs) => Math.floor(10 * (runs.reduce((sum, run) => sum + run.completed, 0) / runs.length)) / 10;

// The completion times and sizes of the workload that is chosen, of those runs that have it. A run of one workload has them for all flows.
const ofWorkload = (cells, { workload }) => {
  if (workload < 0) return cells;
  const own = (run) => (run.completions ? run.completions[workload] : run.workloads[workload] ? run : null);
  const has = (part) => part && part.fct.length > 0;
  const balancers = (all) => all.map(([balancer, runs]) => [balancer, runs.map(own).filter(has)]).filter(([, runs]) => runs.length);
  return cells.map((cell) => ({ ...cell, balancers: balancers(cell.balancers) })).filter((cell) => cell.balancers.length);
};

// The chosen measure as an axis names it, with its unit.
const labelOf = (data, { measure }) => {
  const { title, unit } = data.measures[measure];
  const name = title.replace(/ \(more is better\)$/, "").replace(/^[A-Z][a-z]/, (begin) => begin.toLowerCase());
  return name + (unit ? ` (${unit})` : "");
};

const drawMeasure = (host, data, cells, state) => {
  const bar = ([balancer, runs]) => {
    const { mean, interval, isBound } = spreadOf(data, runs, state);
    const completed = completedOf(runs);
    const count = runs.length > 1 ? `mean of ${runs.length} runs` : "one run";
    return {
      name: data.balancers[balancer],
      colour: balancer,
      value: mean,
      interval,
      isBound,
      completed,
      note: completed < 100 ? `${count}, ${completed} % of the flows completed` : count,
    };
  };
  const groups = cells.slice(0, GROUPS).map(({ name, balancers }) => ({ title: name, bars: balancers.map(bar) }));
  spray.bars("measure", host, { groups, unit: data.measures[state.measure].unit, label: labelOf(data, state) });
  tellRest(host, cells.length, GROUPS);
};

const tellRest = (host, all, most) => {
  if (!all) host.append(spray.el("p", { class: "soft" }, "No flow completed, or the page has no room for single workloads."));
  if (all > most)
    host.append(spray.el("p", { class: "soft" }, `The first ${most} of ${all} are shown; choose fewer above to see others.`));
};

// A line, with its band where there are several runs; `points` are [[x, spread of y]].
const withBand = (name, colour, points) => {
  const there = points.filter(([, { mean }]) => mean !== null);
  const edge = (end) => there.map(([x, { mean, interval }]) => [x, Math.max(interval ? interval[end] : mean, 0)]);
  const outline = there.some(([, { interval }]) => interval) ? [...edge(0), ...edge(1).reverse()] : null;
  return {
    name,
    colour,
    x: there.map(([x]) => x),
    y: there.map(([, { mean }]) => mean),
    band: outline && { x: outline.map(([x]) => x), y: outline.map(([, y]) => y) },
  };
};

// What the name of a line says where not all flows completed.
const partly = (completed) => (completed < 100 ? ` (${completed} % completed)` : "");

const linesWithLegend = (id, host, options) => spray.lines(id, host, { ...options, legend: true });

// A plot for each of the first `plots`, [{ name, options }], side by side; `draw` draws one.
const sideBySide = (id, host, plots, draw = linesWithLegend) => {
  const grid = spray.el("div", { class: plots.length > 1 ? "grid" : "" });
  host.append(grid);
  for (const { name, options } of plots.slice(0, PLOTS)) {
    const own = spray.el("div", { class: "one" }, ...(plots.length > 1 ? [spray.el("h3", {}, name)] : []));
    grid.append(own);
    draw(`${id}: ${name}`, own, options);
  }
  tellRest(host, plots.length, PLOTS);
};

const drawAxis = (host, data, cells, state) => {
  const { name: x, numbers } = data.axes[state.axis];
  // Cells that differ in nothing but this axis are in one plot.
  const plots = new Map();
  for (const { cell, balancers } of cells) {
    const others = cell.axes.map((value, axis) =>
      axis === state.axis || data.axes[axis].values.length < 2 ? "" : `${data.axes[axis].name} ${data.axes[axis].values[value]}`,
    );
    const name = [data.conditions[cell.condition], ...others].filter(Boolean).join(", ");
    if (!plots.has(name)) plots.set(name, new Map());
    for (const [balancer, runs] of balancers) {
      const lines = plots.get(name);
      lines.set(balancer, [
        ...(lines.get(balancer) || []),
        [numbers[cell.axes[state.axis]], spreadOf(data, runs, state), completedOf(runs)],
      ]);
    }
  }
  const line = ([balancer, points]) => ({
    ...withBand(
      data.balancers[balancer] + partly(Math.min(...points.map(([, , completed]) => completed))),
      balancer,
      points.sort(([a], [b]) => a - b),
    ),
    points: true,
  });
  const options = (lines) => ({
    x,
    y: labelOf(data, state),
    xText: (value) => `${x} ${spray.exact(value)}`,
    series: [...lines].sort(([a], [b]) => a - b).map(line),
  });
  sideBySide(
    "axis",
    host,
    [...plots].map(([name, lines]) => ({ name, options: options(lines) })),
  );
};

// The share of the flows that had completed within each time: the mean over the runs, so that a run in which fewer completed counts too.
const completionCurve = (data, runs, end) => {
  const share = (run, time) => {
    const reached = run.fct.filter((at) => at <= time).length;
    return reached ? data.percents[reached - 1] : 0;
  };
  const times = [...new Set(runs.flatMap((run) => run.fct))].sort((a, b) => a - b);
  const all = times.length && times[times.length - 1] < end ? [...times, end] : times;
  return all.map((time) => [
    time,
    spread(
      data,
      runs.map((run) => share(run, time)),
    ),
  ]);
};

// Times beyond this multiple of the median are left to a zoom: one long run is not to stretch the axis of all.
const LONG = 1.5;

// Where the axis of times ends at first, by the ends of its lines; `null` where it shows all of them.
const viewOf = (ends) => {
  const ascending = [...ends].sort((a, b) => a - b);
  const most = LONG * ascending[Math.floor((ascending.length - 1) / 2)];
  return ascending[ascending.length - 1] > most ? most : null;
};

const drawFct = (host, data, all, state) => {
  const cells = ofWorkload(all, state);
  const options = ({ balancers }) => {
    const ends = balancers.map(([, runs]) => Math.max(...runs.flatMap((run) => run.fct)));
    const end = Math.max(...ends);
    const line = ([balancer, runs]) => ({
      ...withBand(data.balancers[balancer], balancer, completionCurve(data, runs, end)),
      steps: true,
    });
    return {
      x: "completion time (us)",
      y: "share of flows (%)",
      top: 100,
      isShare: true,
      view: state.log ? null : viewOf(ends),
      log: state.log,
      series: balancers.map(line),
    };
  };
  sideBySide(
    "fct",
    host,
    cells.map((own) => ({ name: own.name, options: options(own) })),
  );
};

const drawGoodput = (host, data, cells) => {
  const options = ({ balancers }) => {
    const ends = balancers.map(([, runs]) => runs[0].end_us);
    const line = ([balancer, runs]) => {
      const bin = runs[0].end_us / data.bins;
      const time = (at) => Number(((at + 0.5) * bin).toPrecision(8));
      return withBand(
        data.balancers[balancer],
        balancer,
        Array.from({ length: data.bins }, (_, at) => [
          time(at),
          spread(
            data,
            runs.map((run) => run.goodput[at]),
          ),
        ]),
      );
    };
    return { x: "time (us)", y: "goodput (Gb/s)", end: Math.max(...ends), view: viewOf(ends), time: true, series: balancers.map(line) };
  };
  sideBySide(
    "goodput",
    host,
    cells.map((own) => ({ name: own.name, options: options(own) })),
  );
};

const drawSizes = (host, data, all, state) => {
  const cells = ofWorkload(all, state);
  const sizes = (runs) => {
    const sum = (own, key) => own.reduce((sum, size) => sum + size[key], 0);
    const all = runs.flatMap((run) => run.sizes);
    return spray.grouped(all, (size) => size.up_to_bytes).map(([up_to_bytes, own]) => ({
      up_to_bytes,
      flows: sum(own, "flows"),
      mean: sum(own, "mean") / own.length,
      p99: sum(own, "p99") / own.length,
    }));
  };
  const line = ([balancer, runs]) => ({
    name: data.balancers[balancer] + partly(completedOf(runs)),
    colour: balancer,
    sizes: sizes(runs),
    key: state.size,
  });
  sideBySide(
    "sizes",
    host,
    cells.map(({ name, balancers }) => ({ name, options: balancers.map(line) })),
    spray.sizes,
  );
};

const drawDrops = (host, data, cells, state) => {
  const byCause = state.drops === "cause";
  const names = byCause ? spray.causes(data) : data.layers.map((name, layer) => [name, layer]);
  const bar = ([balancer, runs]) => {
    const sums = names.map(() => 0);
    for (const [layer, counts] of runs.flatMap((run) => run.drops))
      counts.forEach((count, cause) => (sums[byCause ? cause : layer] += count / runs.length));
    return {
      name: data.balancers[balancer],
      parts: sums.map((value, at) => ({ name: names[at][0], colour: names[at][1], value })),
    };
  };
  const groups = cells.slice(0, GROUPS).map(({ name, balancers }) => ({ title: name, bars: balancers.map(bar) }));
  const used = names.filter((_, at) => groups.some((group) => group.bars.some((own) => own.parts[at].value)));
  host.append(spray.key(used));
  spray.bars("drops", host, { groups, unit: "frames" });
  tellRest(host, cells.length, GROUPS);
};
