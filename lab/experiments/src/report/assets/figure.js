// The page of a figure of a paper: lines over the conditions, bars of one condition each, and ports over time.
"use strict";

spray.figure = (data) => {
  for (const { id, title, x, unit, lines, bars } of data.plots) {
    const host = spray.card(id);
    if (lines.length) {
      const series = lines.map((line, colour) => ({ ...line, colour, points: line.x.length < 30 }));
      spray.lines(id, host, { x, y: unit, series, legend: true });
    } else {
      spray.bars(id, host, { groups: [{ bars: bars.map((bar) => ({ ...bar, colour: 0 })) }], unit, label: `${title} (${unit})` });
    }
  }
};
