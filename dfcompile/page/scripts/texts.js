// Texts as people read them: names that cannot be obeyed, exact numbers, headings and units of JSON names.
"use strict";
window.dfcompile = {};
(function (page) {
  // Control, format, private and unassigned characters, lone surrogates and separators of lines are shown by number.
  const UNSEEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;
  const DIGITS = 4; // of figures in tables; the JSON and what is copied have all
  const UNITS = {
    cycles: "cycles", bytes: "bytes", s: "s", usd: "USD", w: "W", j: "J", elements: "elements", per_s: "1/s",
    bytes_per_s: "B/s", flop_per_s: "FLOP/s",
  };

  page.shown = function (text) {
    const given = String(text);
    if (/^[ -~]*$/.test(given)) return given; // most are, and the long expression takes its time
    return given.replace(UNSEEN, (char) => {
      const code = char.codePointAt(0).toString(16);
      return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
    });
  };

  // All digits that the JSON has, those before the point in groups.
  page.number = function (value) {
    // Shortest digits that read back as the number, too.
    if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential();
    const text = String(value);
    return /^-?\d{4,}(\.\d+)?$/.test(text) ? text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ",") : text;
  };

  page.cell = function (value) {
    if (value === null || value === undefined) return "-";
    if (value === true) return "yes";
    if (value === false) return "no";
    if (typeof value !== "number") return page.shown(value);
    return page.number(Number.isInteger(value) ? value : Number(value.toPrecision(DIGITS)));
  };

  // "mapping.time_s" -> heading "mapping time", unit "s".
  page.heading = function (name) {
    const words = name.split(".").map((part) => part.split("_"));
    const last = words[words.length - 1];
    const two = last.slice(-2).join("_");
    const three = last.slice(-3).join("_");
    let unit = "";
    if (UNITS[three]) {
      unit = UNITS[three];
      last.splice(last.length > 3 ? -3 : -2); // bytes_per_s has to keep a word
    } else if (last.length > 2 && UNITS[two]) {
      unit = UNITS[two];
      last.splice(-2);
    } else if (last.length > 1 && UNITS[last[last.length - 1]]) {
      unit = UNITS[last.pop()];
    }
    return { text: page.shown(words.map((part) => part.join(" ")).join(" ")), unit };
  };

  page.element = function (name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
})(window.dfcompile);
