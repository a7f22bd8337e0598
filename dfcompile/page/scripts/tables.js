// A table for each list of records in the report: sorted by its headings, filtered by a word, copied as CSV.
"use strict";
(function (page) {
  const MOST_ROWS = 60; // that are shown at once
  const ORDER = new Intl.Collator("en", { numeric: true });

  function isRecord(value) {
    return value !== null && typeof value === "object" && !Array.isArray(value);
  }

  function isRecords(value) {
    return Array.isArray(value) && value.length > 0 && value.every(isRecord);
  }

  function pairs(record) {
    return Object.entries(record).map(([key, value]) => `${key}=${value}`).join(" ");
  }

  // The plain values of a record and of its parts; a choice of names is one text.
  function flat(record, before, row) {
    for (const [key, value] of Object.entries(record)) {
      const name = before + key;
      if (isRecords(value)) continue;
      if (Array.isArray(value)) row[name] = value.map(String).join(", ");
      else if (!isRecord(value)) row[name] = value;
      else if (key === "expansions" || key === "choices") row[name] = pairs(value);
      else flat(value, `${name}.`, row);
    }
    return row;
  }

  function label(record, at) {
    const parts = [];
    if (typeof record.pes === "number") parts.push(`${record.pes} PEs`);
    if (isRecord(record.expansions)) parts.push(pairs(record.expansions));
    if (isRecord(record.schedule) && record.schedule.partition !== "best") parts.push(record.schedule.partition);
    const name = record.step || record.name;
    return parts.join(" ") || (typeof name === "string" ? name : `${at}`);
  }

  // Tables by the names that lead to them; rows of a list within a list say to which record they belong.
  function collect(record, path, of, found) {
    for (const [key, value] of Object.entries(record)) {
      const name = path ? `${path} ${key}` : key;
      if (isRecords(value)) {
        const rows = found.get(name) || found.set(name, []).get(name);
        value.forEach((each, at) => {
          rows.push({ ...(of ? { of } : {}), ...flat(each, "", {}) });
          collect(each, name, of ? `${of}: ${label(each, at)}` : label(each, at), found);
        });
      } else if (isRecord(value)) {
        collect(value, name, of, found);
      }
    }
    return found;
  }

  function compare(a, b) {
    const none = (value) => value === null || value === undefined;
    if (none(a) || none(b)) return none(a) - none(b);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return ORDER.compare(String(a), String(b));
  }

  function quoted(value) {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  // Whether what a cell shows has a word in it; quick, as every key typed asks it of every cell. Texts recur.
  const lowered = new Map();
  function has(value, word) {
    if (typeof value === "number") {
      const digits = Math.abs(value) < 1e-3 && value !== 0 ? value.toExponential() : String(value);
      return digits.includes(word.replaceAll(",", ""));
    }
    let text = lowered.get(value);
    if (text === undefined) lowered.set(value, (text = page.cell(value).toLowerCase()));
    return text.includes(word);
  }

  page.csv = function (names, rows) {
    return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  };

  async function copy(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = "copied";
    } catch {
      const area = page.element("textarea", { "aria-label": "CSV", rows: "6", readonly: "" });
      area.value = text;
      said.replaceChildren("press Ctrl+C: ", area);
      area.select();
    }
  }

  function table(title, rows, isOpen) {
    const names = [...new Set(rows.flatMap(Object.keys))];
    const isNumber = Object.fromEntries(names.map((name) => [name, rows.some((row) => typeof row[name] === "number")]));
    const body = page.element("tbody");
    const said = page.element("span", { class: "hint", "aria-live": "polite" });
    const heads = [];
    let order = { name: null, up: true };
    let word = "";
    let most = MOST_ROWS;

    function chosen() {
      const kept = word ? rows.filter((row) => names.some((name) => has(row[name], word))) : [...rows];
      if (order.name !== null) kept.sort((a, b) => compare(a[order.name], b[order.name]) * (order.up ? 1 : -1));
      return kept;
    }

    function fill() {
      const kept = chosen();
      const lines = kept.slice(0, most).map((row) => page.element("tr", {}, ...names.map((name) => {
        return page.element("td", isNumber[name] ? { class: "number" } : {}, page.cell(row[name]));
      })));
      body.replaceChildren(...lines);
      more.hidden = kept.length <= most;
      said.textContent = `${page.number(Math.min(kept.length, most))} of ${page.number(rows.length)} rows`;
    }

    function sortBy(name) {
      order = { name, up: order.name === name ? !order.up : true };
      for (const [own, head] of heads) {
        if (own === name) head.setAttribute("aria-sort", order.up ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      }
      fill();
    }

    for (const name of names) {
      const { text, unit } = page.heading(name);
      const button = page.element("button", { type: "button" }, text);
      if (unit) button.append(" ", page.element("span", { class: "unit" }, unit));
      button.addEventListener("click", () => sortBy(name));
      heads.push([name, page.element("th", { scope: "col", ...(isNumber[name] ? { class: "number" } : {}) }, button)]);
    }
    const filter = page.element("input", { type: "search", placeholder: "filter", "aria-label": `filter ${title}` });
    filter.addEventListener("input", () => {
      word = filter.value.toLowerCase();
      fill();
    });
    const csv = page.element("button", { type: "button" }, "copy as CSV");
    csv.addEventListener("click", () => copy(page.csv(names, chosen()), said));
    const more = page.element("button", { type: "button" }, "more rows");
    more.addEventListener("click", () => {
      most += 10 * MOST_ROWS;
      fill();
    });
    const head = page.element("thead", {}, page.element("tr", {}, ...heads.map(([, each]) => each)));
    const scrolled = page.element("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": title },
      page.element("table", {}, head, body));
    const held = page.element("details", { class: "table" }, page.element("summary", {}, `${title} (${page.number(rows.length)})`),
      page.element("div", { class: "controls" }, filter, csv, more, said), scrolled);
    held.open = isOpen;
    // What is closed is filled when it is opened: a page with many rows is there at once.
    if (isOpen) fill();
    else held.addEventListener("toggle", () => body.firstChild || fill());
    window.addEventListener("beforeprint", () => held.open && fill());
    return held;
  }

  page.tables = function (place) {
    // What is read first is above, if the page has that.
    let isOpen = !document.querySelector(".small");
    for (const [name, rows] of collect(page.report, "", "", new Map())) {
      if (name === "assumptions") continue;
      place.append(table(page.heading(name).text, rows, isOpen));
      isOpen = false;
    }
  };
})(window.dfcompile);
