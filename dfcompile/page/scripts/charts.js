// Charts as SVG by Observable Plot; what the pointer or an arrow key is at is also said in words below the chart.
"use strict";
(function (page) {
  // Of what is shown in several charts, so that it looks the same in all of them.
  const FIXED = [["proved bound", "attained", "ideal", "bound over all expansions"], ["compute", "memory", "network"]];
  const MOST_DOTS = 24; // on a line: more are a thick line
  const SYMBOLS = ["circle", "square", "triangle", "diamond2", "star", "cross", "wye"];
  const MOST_TICKS = 24;
  const LONGEST_TICK = 26;

  function named(axis) {
    const said = [...(axis.unit && axis.unit !== axis.label ? [axis.unit] : []), ...(axis.is_log ? ["log scale"] : [])];
    return said.length ? `${axis.label} (${said.join(", ")})` : axis.label;
  }

  function figure(value, axis) {
    if (value === null) return axis.beyond;
    if (typeof value === "string") return value;
    return axis.unit ? `${page.number(value)} ${axis.unit}` : page.number(value);
  }

  page.said = function (mark, chart) {
    const parts = [`${chart.x.label}: ${figure(mark.x, chart.x)}`, `${chart.y.label}: ${figure(mark.y, chart.y)}`];
    if (chart.kind === "grid") parts.splice(0, 2, `${mark.row} ${mark.x}`);
    if (chart.kind === "rows") parts.splice(0, 2, mark.x, figure(mark.y, chart.y));
    if (chart.kind === "bracket") parts.splice(0, 2, `${mark.series}: ${figure(mark.y, chart.x)}`);
    if (mark.series && chart.kind !== "bracket") parts.push(mark.series);
    if (mark.label && mark.label !== mark.series && mark.label !== mark.x) parts.push(mark.label);
    return parts.join("\n");
  };

  function scale(axis) {
    const shape = axis.is_log ? { type: "log" } : { type: "linear", zero: true, nice: true };
    return { label: named(axis), tickFormat: "~s", grid: true, ...shape };
  }

  function cut(name) {
    return name.length > LONGEST_TICK ? `${name.slice(0, LONGEST_TICK - 1)}…` : name;
  }

  function bands(names, label) {
    const every = Math.ceil(names.length / MOST_TICKS);
    const ticks = names.filter((_, at) => at % every === 0);
    const isLong = ticks.some((name) => name.length > 4);
    return { type: "band", domain: names, ticks, label, tickFormat: cut, tickRotate: isLong ? -40 : 0, isLong };
  }

  function guides(chart) {
    return chart.guides.map((guide) => {
      return Plot.line([0, 1], { x: (end) => guide.x[end], y: (end) => guide.y[end], strokeDasharray: "5 4", strokeWidth: 1.2 });
    });
  }

  // Where marks beyond all numbers are drawn, and the line before them; null where there are none.
  function beyond(chart, marks) {
    if (!marks.some((mark) => mark.x === null)) return null;
    const places = [...marks.map((mark) => mark.x).filter((x) => x !== null), ...chart.guides.flatMap((guide) => guide.x)];
    const [least, most] = d3.extent(places.length ? places : [1]);
    const step = chart.x.is_log ? Math.max(most / least, 10) ** 0.12 : 0.12 * (most - least || 1);
    return chart.x.is_log ? { line: most * step, x: most * step * step } : { line: most + step, x: most + 2 * step };
  }

  function aside(chart, place) {
    if (!place) return [];
    return [
      Plot.ruleX([place.line], { strokeDasharray: "1 3" }),
      Plot.text([chart.x.beyond], { x: place.line, frameAnchor: "bottom", text: (text) => text, textAnchor: "end", dx: -4, dy: -6 }),
    ];
  }

  function dotted(chart, series) {
    const marks = page.marks(chart);
    const said = (mark) => page.said(mark, chart);
    const place = beyond(chart, marks);
    const by = { x: (mark) => (mark.x === null ? place.x : mark.x), y: "y" };
    const dots = {
      ...by, stroke: "series", fill: "series", fillOpacity: 0.75, r: 3.8, symbol: series.length > 1 && chart.colouring === "series" ? "series" : undefined,
    };
    const isDashed = (mark) => mark.series in chart.dashed;
    const isThick = chart.kind === "lines" && marks.length > MOST_DOTS * series.length;
    const line = { ...by, z: "series", stroke: "series", sort: "x" };
    const drawn = [
      ...guides(chart),
      ...aside(chart, place),
      ...(chart.kind !== "lines" ? [] : [
        Plot.line(marks.filter((mark) => !isDashed(mark)), { ...line, curve: chart.has_steps ? "step-after" : "linear" }),
        Plot.line(marks.filter(isDashed), { ...line, strokeDasharray: "5 3" }),
      ]),
      ...(isThick ? [] : [Plot.dot(marks, dots)]),
      Plot.dot(marks.filter((mark) => mark.isChosen), { ...by, r: 8, stroke: "currentColor", strokeWidth: 2 }),
      Plot.tip(marks, Plot.pointer({ ...by, title: said, fill: "var(--paper)", stroke: "currentColor" })),
    ];
    return {
      marks, finish: (svg) => page.label(svg, chart, marks, place),
      options: { x: scale(chart.x), y: scale(chart.y), marks: drawn, ...(isThick ? {} : { symbol: { domain: series, range: SYMBOLS } }) },
    };
  }

  function stacked(chart) {
    const marks = page.marks(chart);
    const names = [...new Set(marks.map((mark) => mark.x))];
    const { isLong, ...x } = bands(names, named(chart.x));
    const said = (mark) => page.said(mark, chart);
    const drawn = [
      Plot.barY(marks, { x: "x", y: "y", fill: "series", title: said, tip: { fill: "var(--paper)", stroke: "currentColor" } }),
      Plot.ruleY([0]),
    ];
    const y = { ...scale(chart.y), type: "linear" };
    return { marks, options: { x, y, marks: drawn, marginBottom: isLong ? 110 : 40, height: isLong ? 370 : 300 } };
  }

  // Bars that lie, so that names are read.
  function lying(chart, series) {
    const marks = page.marks(chart);
    const rows = [...new Set(marks.map((mark) => mark.x))];
    const said = (mark) => page.said(mark, chart);
    const fill = { series: "series", operator: { value: (mark) => page.colourOf(mark.series), scale: null },
      strength: { value: (mark) => page.colourOf(mark.x), scale: null } }[chart.colouring];
    const isFaint = chart.colouring === "strength";
    const drawn = [
      Plot.barX(marks, {
        y: "x", x: "y", fill, title: said, insetTop: 2, insetBottom: 2, ...(chart.colouring === "strength" ? {} : { insetRight: 0.5 }),
        ...(isFaint ? { fillOpacity: { value: (mark) => page.strength(series.indexOf(mark.series)), scale: null } } : {}),
        tip: { fill: "var(--paper)", stroke: "currentColor", fillOpacity: 1 },
      }),
      Plot.ruleX([0]),
    ];
    const label = Math.min(Math.max(...rows.map((row) => cut(row).length)), LONGEST_TICK);
    return {
      marks,
      options: {
        x: { ...scale({ ...chart.y, is_log: false }), ticks: 5, labelAnchor: "right" },
        y: { type: "band", domain: rows, label: null, tickFormat: cut, tickSize: 0 },
        marks: drawn, marginLeft: 12 + 7 * label, marginRight: 20, height: 60 + 24 * rows.length,
      },
    };
  }

  function bracketed(chart) {
    const marks = page.marks(chart);
    const rows = [...new Set(marks.map((mark) => mark.x))];
    const spans = rows.map((row) => {
      const values = marks.filter((mark) => mark.x === row).map((mark) => mark.y);
      return { row, least: Math.min(...values), most: Math.max(...values) };
    });
    const said = (mark) => page.said(mark, chart);
    const label = Math.min(Math.max(...rows.map((row) => cut(row).length)), LONGEST_TICK);
    const drawn = [
      Plot.ruleY(spans, { y: "row", x1: "least", x2: "most", strokeWidth: 5, strokeOpacity: 0.25 }),
      Plot.dot(marks, { y: "x", x: "y", fill: "series", symbol: "series", r: 5 }),
      Plot.tip(marks, Plot.pointer({ y: "x", x: "y", title: said, fill: "var(--paper)", stroke: "currentColor" })),
    ];
    return {
      marks,
      options: {
        x: { label: named(chart.x), tickFormat: "~s", grid: true, zero: true, ticks: 5 },
        y: { type: "band", domain: rows, label: null, tickFormat: cut },
        symbol: { range: SYMBOLS },
        marks: drawn, marginLeft: 12 + 7 * label, marginRight: 20, height: 60 + 26 * rows.length,
      },
    };
  }

  // Rows and columns of names: a cell says what its colour means, so that it is read without the legend.
  function gridded(chart) {
    const marks = page.marks(chart);
    const rows = [...new Set(marks.map((mark) => mark.row))];
    const columns = [...new Set(marks.map((mark) => mark.x))].sort();
    const said = (mark) => page.said(mark, chart);
    const drawn = [
      Plot.cell(marks, { x: "x", y: "row", fill: "series", fillOpacity: 0.28, inset: 1 }),
      Plot.text(marks, { x: "x", y: "row", text: "series" }),
      Plot.tip(marks, Plot.pointer({ x: "x", y: "row", title: said, fill: "var(--paper)", stroke: "currentColor" })),
    ];
    const label = Math.min(Math.max(...rows.map((row) => cut(row).length)), LONGEST_TICK);
    return {
      marks,
      options: {
        x: { type: "band", domain: columns, label: null, axis: "top" },
        y: { type: "band", domain: rows, label: null, tickFormat: cut },
        // On a phone it is as wide as it has to be, and scrolls.
        marks: drawn, marginTop: 30, least: 12 + 7 * label + 66 * columns.length, marginLeft: 12 + 7 * label, height: 60 + 24 * rows.length,
      },
    };
  }

  // Arrow keys go from mark to mark; the words stand in a line that screen readers read out.
  function walk(drawing, chart, marks, said) {
    let at = -1;
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || !marks.length) return;
      event.preventDefault();
      at = Math.min(Math.max(at + step, 0), marks.length - 1);
      said.textContent = page.said(marks[at], chart).replaceAll("\n", "; ");
    });
  }

  page.draw = function (figureElement, chart) {
    const place = figureElement.querySelector(".drawing");
    const found = chart.series.map(page.shown);
    const fixed = FIXED.find((names) => found.every((name) => names.includes(name))) || [];
    const series = fixed.length ? fixed.filter((name) => found.includes(name)) : found;
    const bases = series.filter((name) => (chart.dashed[name] || name) === name);
    const colourOf = (name) => {
      if (chart.colouring === "operator") return page.colourOf(name);
      const own = chart.dashed[name] || name;
      return page.colours[(fixed.length ? fixed : bases).indexOf(own) % page.colours.length];
    };
    const drawer = { lines: dotted, dots: dotted, bars: stacked, rows: lying, bracket: bracketed, grid: gridded }[chart.kind];
    const { marks, finish, options: { least = 260, ...options } } = drawer(chart, series);
    const said = page.element("p", { class: "hint said", "aria-live": "polite" });
    const colours = series.map(colourOf);
    function redraw() {
      const svg = Plot.plot({
        className: "plot", width: Math.max(Math.floor(place.clientWidth), least), height: 300, marginLeft: 56, marginBottom: 44,
        color: { domain: series, range: colours }, ariaLabel: page.shown(chart.title), ...options,
      });
      svg.addEventListener("input", () => {
        said.textContent = svg.value ? page.said(svg.value, chart).replaceAll("\n", "; ") : "";
      });
      if (finish) finish(svg);
      place.replaceChildren(svg);
    }
    place.tabIndex = 0;
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", `${page.shown(chart.title)}: arrow keys read its ${marks.length} figures`);
    const legend = chart.colouring === "strength" ? series.map((name, at) => [name, "currentColor", page.strength(at)])
      : bases.map((name) => [name, colourOf(name), 1]);
    if (chart.colouring !== "operator" && series.some(Boolean)) place.before(page.legend(legend, "colours"));
    place.after(said);
    walk(place, chart, marks, said);
    let width = place.clientWidth;
    if (width) redraw(); // at once: what says that it is ready is drawn
    new ResizeObserver(() => {
      if (place.clientWidth !== width) {
        width = place.clientWidth;
        redraw();
      }
    }).observe(place);
  };
})(window.dfcompile);
