// Fills the page: charts, the schedule, tables.
"use strict";
(function (page) {
  for (const figure of document.querySelectorAll("figure.chart")) {
    page.draw(figure, page.charts[Number(figure.dataset.chart)]);
  }
  const place = document.getElementById("timeline");
  if (place && page.timelines.length) page.timeline(place);
  page.tables(document.getElementById("tables"));
  document.documentElement.dataset.ready = "yes";
})(window.dfcompile);
