// The values that the page was written with: the report as JSON has it, charts, and timelines as typed columns.
"use strict";
(function (page) {
  const TYPES = { i4: Int32Array, f8: Float64Array };

  function read(id) {
    return JSON.parse(document.getElementById(id).textContent);
  }

  page.column = function (packed) {
    const text = atob(packed.base64);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    return new TYPES[packed.type](bytes.buffer);
  };

  page.report = read("report");
  const drawn = read("charts");
  page.charts = drawn.charts;
  page.timelines = drawn.timelines;
  page.dataflow = drawn.graph;
  page.operators = drawn.operators.map(page.shown);

  // Marks of a chart as objects; the page holds them as columns.
  page.marks = function (chart) {
    const { x, y, series, label, is_chosen: chosen, row, name } = chart.marks;
    const names = chart.series.map(page.shown);
    const best = new Set(chosen);
    return x.map((value, at) => ({
      x: typeof value === "string" ? page.shown(value) : value,
      y: y[at],
      series: names[series[at]],
      label: label ? page.shown(label[at]) : "",
      isChosen: best.has(at),
      row: row ? page.shown(row[at]) : "",
      name: name ? page.shown(name[at]) : "",
    }));
  };
})(window.dfcompile);
