// Fills the page: charts, the schedule, the dataflow graph, tables.
"use strict";
(function (page) {
  const legend = document.getElementById("operators");
  if (legend && page.operators.length) page.operatorLegend(legend);
  for (const figure of document.querySelectorAll("figure.chart")) {
    page.draw(figure, page.charts[Number(figure.dataset.chart)]);
  }
  const place = document.getElementById("timeline");
  if (place && page.timelines.length) page.timeline(place);
  if (page.dataflow) page.graph(document.getElementById("graph"), page.dataflow);
  page.tables(document.getElementById("tables"));
  document.documentElement.dataset.ready = "yes";
})(window.dfcompile);
