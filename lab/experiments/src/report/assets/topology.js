// The fabric as a drawing: switches by tier, links coloured by their load in an interval of time, failed ones marked. A slider goes
// through the intervals, which end where something failed or came back.
"use strict";

// `topology` is as in the page's data.
spray.topology = (id, host, topology) => {
  const { nodes, links, times, failures } = topology;
  const last = times.length - 2;
  const state = { step: 0, playing: null };
  const drawing = spray.el("div", { class: "drawing" });
  const title = spray.el("p", { class: "when", "aria-live": "polite" });
  const slider = spray.el("input", {
    type: "range",
    min: 0,
    max: Math.max(last, 0),
    value: 0,
    "aria-label": "interval of time",
    oninput: (event) => show(Number(event.target.value)),
  });
  const button = (text, label, onclick) => spray.el("button", { type: "button", title: label, "aria-label": label, onclick }, text);
  const play = button("Play", "Play", () => (state.playing ? stop() : start()));
  const controls = spray.el(
    "div",
    { class: "controls" },
    play,
    ...(topology.failures.length
      ? [
          button("Previous change", "To where something failed or came back before", () => jump(-1)),
          button("Next change", "To where something fails or comes back next", () => jump(1)),
        ]
      : []),
    slider,
  );
  host.append(
    controls,
    title,
    spray.ramp(100, (value) => `${value} % load`),
    drawing,
  );
  if (last < 1) controls.hidden = true;

  // Failures at work in an interval, by link.
  const failed = (step) => {
    const [from, to] = [times[step], times[step + 1]];
    const found = new Map();
    for (const failure of failures) {
      const until = failure.until_us === null ? Infinity : failure.until_us;
      if (failure.from_us < to && until > from)
        for (const link of failure.links) found.set(link, [...(found.get(link) || []), failure]);
    }
    return found;
  };
  const changes = failures
    .flatMap((failure) => [failure.from_us, failure.until_us])
    .filter((time) => time !== null && time < times[last + 1]);
  const stepAt = (time) =>
    Math.max(
      times.findLastIndex((begin) => begin <= time * 1.000001 + 1e-9),
      0,
    );
  const steps = [...new Set(changes.map(stepAt))].sort((a, b) => a - b);
  const jump = (by) => {
    const next = by > 0 ? steps.find((step) => step > state.step) : steps.findLast((step) => step < state.step);
    show(next === undefined ? (by > 0 ? last : 0) : next);
  };
  const start = () => {
    if (state.step >= last) show(0);
    play.textContent = "Pause";
    state.playing = setInterval(() => (state.step < last ? show(state.step + 1) : stop()), 350);
  };
  const stop = () => {
    clearInterval(state.playing);
    state.playing = null;
    play.textContent = "Play";
  };
  const show = (step) => {
    state.step = Math.min(Math.max(step, 0), Math.max(last, 0));
    slider.value = state.step;
    const broken = failed(state.step);
    const what = [...new Set([...broken.values()].flat().map((failure) => failure.what))];
    const text = what.slice(0, 4).join("; ") + (what.length > 4 ? ` and ${what.length - 4} more` : "");
    title.replaceChildren(
      `${spray.exact(times[state.step])} to ${spray.exact(times[state.step + 1])} us`,
      ...(text ? [spray.el("b", {}, ` ${text}`)] : [""]),
    );
    colour(lines, links, state.step, broken);
  };

  let lines = [];
  spray.sized(host, (width) => {
    lines = drawFabric(drawing, width, {
      nodes,
      links,
      tell: (index) => [links[index], state.step, failed(state.step).get(index)],
    });
    show(state.step);
  });
  spray.redraws.push([host, () => show(state.step)]);
  // Begins where the first thing fails.
  if (steps.length) show(steps[0]);
  spray.plots[id] = {
    ...spray.saves(
      id,
      host,
      (width) => spray.saves.topology(width, { topology, step: state.step, broken: failed(state.step) }),
      () => linkRows(topology, state.step, failed(state.step)),
    ),
    links: () => links,
    times: () => times,
    step: () => state.step,
    failed: () => [...failed(state.step).keys()],
    show,
  };
};

// The rows of its CSV.
const linkRows = ({ nodes, links, times }, step, broken) => [
  ["link", "from", "to", "links", "from_us", "to_us", "load_percent", "failed"],
  ...links.map((link, index) => {
    const ends = [nodes[link.from].name, nodes[link.to].name];
    return [link.name, ...ends, link.links, times[step], times[step + 1], link.load[step], (broken.get(index) || []).map(({ what }) => what).join("; ")];
  }),
];

// Gives each link the colour of its load; dashes if it has failed in any way, and a cross if it carries nothing. A line that stands for several
// keeps its colour.
const colour = (lines, links, step, broken) => {
  const heat = spray.heat();
  lines.forEach(({ line, cross }, index) => {
    const load = links[index].load[step];
    const isDead = (broken.get(index) || []).some((failure) => failure.drops_all);
    const isSingle = links[index].links === 1;
    line.setAttribute("stroke", isDead && isSingle ? spray.css("--bad") : load === null ? spray.css("--grid") : heat(load / 100));
    line.setAttribute("stroke-dasharray", broken.has(index) && isSingle ? "5 4" : "none");
    cross.setAttribute("visibility", isDead ? "visible" : "hidden");
  });
};

// Places of nodes: tiers in rows, hosts' switches below; on a circle where all switches are of one tier.
const placed = (nodes, width, rows) => {
  const count = new Map();
  const all = new Map();
  nodes.forEach(({ tier }) => all.set(tier, (all.get(tier) || 0) + 1));
  const tiers = [...all.keys()].sort((a, b) => a - b);
  return nodes.map(({ tier }, index) => {
    if (tiers.length === 1) {
      const angle = (2 * Math.PI * index) / nodes.length - Math.PI / 2;
      return {
        x: width / 2 + (width / 2 - 60) * Math.cos(angle),
        y: rows.circle / 2 + (rows.circle / 2 - 40) * Math.sin(angle),
        room: 60,
      };
    }
    const own = count.get(tier) || 0;
    count.set(tier, own + 1);
    const room = (width - 16) / all.get(tier);
    return { x: 8 + room * (own + 0.5), y: rows.top + (tiers.length - 1 - tiers.indexOf(tier)) * rows.step, room };
  });
};

const drawFabric = (drawing, width, { nodes, links, tell }) => {
  const tiers = new Set(nodes.map((node) => node.tier)).size;
  const rows = { top: 26, step: 130, circle: Math.min(width, 640) };
  const height = tiers === 1 ? rows.circle : rows.top + (tiers - 1) * rows.step + 52;
  const places = placed(nodes, width, rows);
  const svg = spray.svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": "Switches and links by load",
  });
  const lines = links.map((link, index) => {
    const [a, b] = [places[link.from], places[link.to]];
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const thick = link.links > 1 ? 5 : links.length > 120 ? 1.6 : 3;
    const off = thick * 0.7 + 0.4;
    const [dx, dy] = [(-(b.y - a.y) / length) * off, ((b.x - a.x) / length) * off];
    const ends = { x1: a.x + dx, y1: a.y + dy, x2: b.x + dx, y2: b.y + dy };
    const line = spray.svg("line", { ...ends, "stroke-width": thick });
    // Nearer to where the link begins, so that the crosses of the two directions are apart.
    const [mx, my] = [ends.x1 + (ends.x2 - ends.x1) * 0.4, ends.y1 + (ends.y2 - ends.y1) * 0.4];
    const cross = spray.svg("path", { d: `M${mx - 5} ${my - 5}l10 10m0 -10l-10 10`, class: "cross", visibility: "hidden" });
    const reach = spray.svg("line", { ...ends, class: "reach" });
    reach.addEventListener("pointermove", (event) => {
      const [own, step, what] = tell(index);
      const mean = own.links > 1 ? `mean of ${own.links} links` : "load";
      const load = own.load[step] === null ? "not sampled" : `${spray.exact(own.load[step])} %`;
      spray.tip.show(event.clientX, event.clientY, own.name, [
        { name: mean, value: load },
        ...(what || []).map((failure) => ({ name: failure.what, value: "" })),
      ]);
    });
    reach.addEventListener("pointerleave", () => spray.tip.hide());
    return { line, cross, reach };
  });
  const boxes = nodes.map((node, index) => nodeBox(node, places[index]));
  svg.append(...lines.map((own) => own.line), ...lines.map((own) => own.cross), ...lines.map((own) => own.reach), ...boxes);
  drawing.replaceChildren(svg);
  return lines;
};

const nodeBox = (node, { x, y, room }) => {
  const wide = Math.min(room - 4, 96);
  const named = wide >= 7 * Math.min(node.name.length, 9);
  const box = spray.svg("rect", {
    x: x - (named ? wide : Math.min(wide, 12)) / 2,
    y: y - 12,
    width: named ? wide : Math.min(wide, 12),
    height: 24,
    rx: 5,
    class: "node",
  });
  const label = named ? [spray.svg("text", { x, y: y + 4.5, class: "label" }, spray.cut(node.name, Math.floor(wide / 7)))] : [];
  const hosts =
    node.hosts && (named || room > 20)
      ? [spray.svg("text", { x, y: y + 30, class: "hosts" }, room > 60 ? `${node.hosts} hosts` : String(node.hosts))]
      : [];
  const group = spray.svg("g", {}, box, ...label, ...hosts);
  group.addEventListener("pointermove", (event) =>
    spray.tip.show(event.clientX, event.clientY, node.name, [{ name: "hosts", value: String(node.hosts) }]),
  );
  group.addEventListener("pointerleave", () => spray.tip.hide());
  return group;
};
