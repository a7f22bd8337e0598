// Colours: of the series of a chart, and of operators, which have one colour on the whole page.
"use strict";
(function (page) {
  // Okabe and Ito's colours, told apart by colour-blind people; without yellow and black, which are lost on one paper.
  page.colours = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#8A8A8A"];
  const OTHER = "#8A8A8A";
  // Of operators, the largest first; all smaller ones are grey.
  const OPERATORS = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#8C6D31", "#7F77D0", "#A3A83B", "#C8506B"];
  const STRENGTHS = [1, 0.68, 0.46, 0.28];

  page.rank = function (operator) {
    const at = page.operators.indexOf(page.shown(operator));
    return at < 0 || at >= OPERATORS.length ? OPERATORS.length : at;
  };

  page.colourOf = function (operator) {
    return OPERATORS[page.rank(operator)] || OTHER;
  };

  // How much of its colour a part of an operator has.
  page.strength = function (at) {
    return STRENGTHS[Math.min(at, STRENGTHS.length - 1)];
  };

  page.legend = function (items, name) {
    const lines = items.map(([words, colour, strength]) => {
      const swatch = page.element("span", { class: "swatch" });
      swatch.style.background = colour;
      swatch.style.opacity = strength;
      return page.element("li", {}, swatch, words);
    });
    return page.element("ul", { class: "legend", "aria-label": name }, ...lines);
  };

  // The legend of the page: what is read in the schedule, in the charts beside it and in the graph.
  page.operatorLegend = function (place) {
    const named = page.operators.slice(0, OPERATORS.length).map((name) => [name, page.colourOf(name), 1]);
    const left = page.operators.length - named.length;
    if (left > 0) named.push([left === 1 ? page.operators[OPERATORS.length] : `${page.number(left)} smaller ones`, OTHER, 1]);
    place.append(page.legend(named, "colours of operators"));
  };
})(window.dfcompile);
