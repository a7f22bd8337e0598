// Words in a chart: names of lines, then of dots, each where it covers no other word and no dot; else a dot has none.
"use strict";
(function (page) {
  const LETTER = 6.3; // pixels of a letter, about
  const HEIGHT = 13;
  const GAP = 7;
  const ALONG = [1, 0.8, 0.6, 0.4, 0.2, 0];

  function box(x, y, words, anchor) {
    const width = words.length * LETTER;
    const left = anchor === "end" ? x - width : anchor === "middle" ? x - width / 2 : x;
    return { left, right: left + width, top: y - HEIGHT + 2, bottom: y + 3, x, y, words, anchor };
  }

  function meets(a, b) {
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  }

  function around(x, y, words) {
    return [box(x + GAP, y + 4, words, "start"), box(x - GAP, y + 4, words, "end"), box(x, y - GAP, words, "middle"),
      box(x, y + GAP + 10, words, "middle"), box(x + GAP, y - 5, words, "start"), box(x + GAP, y + 14, words, "start")];
  }

  // A level line has its name above or below it, any other beside it: a roof has nothing above.
  function beside([a, b], words, isFirst) {
    const isLevel = Math.abs(a.y - b.y) < 1;
    const along = isFirst ? [0.5, ...ALONG.slice().reverse()] : ALONG;
    return along.flatMap((share) => {
      const [x, y] = [a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)];
      return isLevel ? [box(x, y - 5, words, "end"), box(x, y + 14, words, "end")]
        : [box(x - GAP, y - 2, words, "end"), box(x + GAP, y + 14, words, "start")];
    });
  }

  // Write the names of guides and marks into a drawing of Plot.
  page.label = function (svg, chart, marks, place) {
    const scales = { x: svg.scale("x"), y: svg.scale("y") };
    const at = (x, y) => ({ x: scales.x.apply(x), y: scales.y.apply(y) });
    const [left, right] = d3.extent(scales.x.range);
    const [top, bottom] = d3.extent(scales.y.range);
    const dots = marks.map((mark) => at(mark.x === null ? place.x : mark.x, mark.y));
    const taken = dots.map(({ x, y }) => ({ left: x - 4, right: x + 4, top: y - 4, bottom: y + 4 }));
    if (place) taken.push({ left, right, top: bottom - 20, bottom }); // the words of the dotted line
    const isInside = (one) => one.left >= left && one.right <= right + 12 && one.top >= top - 16 && one.bottom <= bottom;
    const written = [];
    const put = (choices, isNeeded) => {
      const found = choices.find((one) => isInside(one) && !taken.some((other) => meets(one, other))) ||
        (isNeeded ? choices.find(isInside) || choices[0] : null);
      if (found) {
        taken.push(found);
        written.push(found);
      }
    };
    for (const guide of chart.guides) {
      put(beside([0, 1].map((end) => at(guide.x[end], guide.y[end])), page.shown(guide.label), !guide.at), true);
    }
    marks.forEach((mark, number) => mark.name && put(around(dots[number].x, dots[number].y, mark.name), false));
    for (const { x, y, words, anchor } of written) {
      const made = document.createElementNS("http://www.w3.org/2000/svg", "text");
      for (const [key, value] of Object.entries({ x, y, "text-anchor": anchor, class: "name" })) made.setAttribute(key, value);
      made.textContent = words;
      svg.append(made);
    }
  };
})(window.dfcompile);
