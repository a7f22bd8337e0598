// The dataflow graph as a picture whose boxes open and close, by the pointer and by keys.
"use strict";
(function (page) {
  const { height: HEIGHT, pad: PAD, isBranch, visible, text, path } = page.boxes;
  const MOST_SHOWN = 1500; // boxes: more are no picture any more
  const MOST_OPEN = 60; // operators that are shown at first, if they are in configurations
  const MOST_LABELS = 80; // edges with their amount beside them
  const MOST_SAID = 5; // neighbours in the words on a box

  function drawn(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function contents(one) {
    const parts = [];
    if (!isBranch(one) && one.children.length) return contents(one.children[0]);
    if (one.level === "family") parts.push(one.kind + (one.members > 1 ? `, ${page.number(one.members)} of them` : ""));
    else parts.push(one.level, `${page.number(one.families.length)} parts`, `${page.number(one.tasks)} tasks`, `${page.number(one.arrays)} arrays`);
    return parts.join(", ");
  }

  function ends(edges, which, unit) {
    const named = edges.slice(0, MOST_SAID).map((edge) => {
      return `${page.number(edge.amount)} ${unit} ${which === "from" ? "from" : "to"} ${edge[which].name}${edge.inMemory ? " through memory" : ""}`;
    });
    if (edges.length > MOST_SAID) named.push(`${edges.length - MOST_SAID} more`);
    return named.join(", ");
  }

  page.graph = function (place, graph) {
    const { root, leaves, laidOut } = page.graphOf(graph);
    const origins = [...new Set(leaves.filter((leaf) => leaf.kind !== "buffer").map((leaf) => leaf.operator))];
    const colours = new Map(origins.map((name) => [name, page.colourOf(name)]));
    const holder = page.element("div", { class: "scrolled graph", role: "group", "aria-label": `dataflow graph of ${root.name}` });
    const said = page.element("p", { class: "said", "aria-live": "polite" });
    let shown = [];
    let edges = [];
    let at = root;

    function words(one) {
      const into = edges.filter((edge) => edge.to === one);
      const out = edges.filter((edge) => edge.from === one);
      const parts = [`${one.name}: ${contents(one)}`];
      if (into.length) parts.push(ends(into, "from", graph.unit));
      if (out.length) parts.push(ends(out, "to", graph.unit));
      return parts.join("; ");
    }

    function focus(one) {
      if (at.drawn) at.drawn.setAttribute("tabindex", "-1");
      at = one;
      one.drawn.setAttribute("tabindex", "0");
      one.drawn.focus();
    }

    function toggle(one) {
      if (!isBranch(one) || !one.parent) return;
      one.isOpen = !one.isOpen;
      if (visible(root).length > MOST_SHOWN) {
        one.isOpen = false;
        said.textContent = `${one.name} has ${page.number(one.families.length)} parts: more than a picture shows`;
        return;
      }
      draw();
      focus(one);
    }

    function setAll(isOpen, isDeep) {
      const before = new Map();
      const walk = (one) => {
        if (one.parent && isBranch(one) && (isDeep || one.level === "configuration")) {
          before.set(one, one.isOpen);
          one.isOpen = isOpen;
        }
        one.children.forEach(walk);
      };
      walk(root);
      if (visible(root).length <= MOST_SHOWN) {
        draw();
        return true;
      }
      for (const [one, wasOpen] of before) one.isOpen = wasOpen;
      said.textContent = `that would be more than ${page.number(MOST_SHOWN)} boxes; open operators one by one`;
      return false;
    }

    function colourOf(one) {
      if (one.level === "configuration" || !one.tasks) return null;
      return colours.get(leaves[one.families[0]].operator);
    }

    function shape(one) {
      const isTask = one.tasks > 0;
      const { x, y, width, height } = one;
      const colour = colourOf(one);
      const rx = one.level === "family" && !isTask ? HEIGHT / 2 : 3;
      const under = one.isOpen ? [] : [drawn("rect", { x, y, width, height, rx, class: "under" })]; // edges do not show through
      const frame = drawn("rect", {
        x, y, width, height, rx, class: `${colour ? "" : "plain "}${one.isOpen ? "open " : ""}${one.level}`,
        ...(colour ? { fill: colour, "fill-opacity": one.isOpen ? 0.08 : 0.28, stroke: colour } : {}),
      });
      const sign = isBranch(one) ? (one.isOpen ? "▾ " : "▸ ") : "";
      const label = drawn("text", one.isOpen
        ? { x: x + 8, y: y + 17 } : { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle" }, sign + text(one));
      const role = isBranch(one) ? { role: "button", "aria-expanded": String(one.isOpen) } : { role: "img" };
      const made = drawn("g", { tabindex: "-1", class: isBranch(one) ? "branch" : "leaf", "aria-label": words(one), ...role }, ...under, frame, label);
      made.addEventListener("click", () => (isBranch(one) ? toggle(one) : focus(one)));
      made.addEventListener("focus", () => { said.textContent = words(one); });
      made.addEventListener("pointerenter", () => { said.textContent = words(one); });
      one.drawn = made;
      return made;
    }

    function line(edge, isLabelled) {
      const { line: d, end, first, second } = path(edge);
      const colour = edge.inMemory ? "memory" : "stream";
      const parts = [
        drawn("path", { d, class: `edge ${colour}` }),
        drawn("path", { d: `M${end.x - 3.5} ${end.bottom - 6}L${end.x} ${end.bottom}L${end.x + 3.5} ${end.bottom - 6}Z`, class: `tip ${colour}` }),
      ];
      if (isLabelled) {
        const half = { x: (first.x + second.x) / 2 + 4, y: (first.bottom + second.top) / 2 + 4 };
        parts.push(drawn("text", { ...half, class: "amount" }, d3.format(".3~s")(edge.amount)));
      }
      return parts;
    }

    function opened(one) {
      return one.isOpen ? [...(one.parent ? [one] : []), ...one.children.flatMap(opened)] : [one];
    }

    function draw() {
      edges = laidOut();
      shown = opened(root);
      const width = Math.ceil(root.width + 2 * PAD);
      const height = Math.ceil(root.height + 2 * PAD);
      const boxes = shown.map(shape);
      holder.replaceChildren(drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}` },
        ...boxes.filter((_, each) => shown[each].isOpen),
        ...edges.flatMap((edge) => line(edge, edges.length <= MOST_LABELS)),
        ...boxes.filter((_, each) => !shown[each].isOpen)));
      if (!shown.includes(at)) at = shown[0];
      at.drawn.setAttribute("tabindex", "0");
    }

    function step(by) {
      const number = shown.indexOf(at) + by;
      if (shown[number]) focus(shown[number]);
    }

    holder.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = {
        ArrowDown: () => step(1), ArrowRight: () => step(1), ArrowUp: () => step(-1), ArrowLeft: () => step(-1),
        Home: () => focus(shown[0]), End: () => focus(shown.at(-1)), Enter: () => toggle(at), " ": () => toggle(at),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });

    function find(word) {
      const found = leaves.filter((leaf) => leaf.parent.name.toLowerCase().includes(word) || leaf.name.toLowerCase().includes(word));
      if (!word || !found.length) {
        said.textContent = word ? "no operator has that in its name" : "";
        return;
      }
      const holders = [...new Set(found.map((leaf) => leaf.parent))];
      const one = holders[(holders.indexOf(at) + 1) % holders.length];
      for (let up = one.parent; up; up = up.parent) up.isOpen = true;
      draw();
      focus(one);
      one.drawn.scrollIntoView({ block: "nearest", inline: "center" });
    }

    const controls = page.element("div", { class: "controls" });
    const search = page.element("input", { type: "search", placeholder: "find an operator", "aria-label": "find an operator of the graph" });
    search.addEventListener("keydown", (event) => event.key === "Enter" && find(search.value.toLowerCase()));
    controls.append(search);
    const hasConfigurations = root.children.some((child) => child.level === "configuration");
    const buttons = [
      ...(hasConfigurations ? [["open configurations", () => setAll(true, false)]] : []),
      ["open operators", () => setAll(true, true)],
      ["close all", () => setAll(false, true)],
    ];
    for (const [name, act] of buttons) {
      const button = page.element("button", { type: "button" }, name);
      button.addEventListener("click", act);
      controls.append(button);
    }
    const hint = page.element("p", { class: "hint" }, `Boxes with ▸ open. Solid: can stream on the chip; dashed: through memory; beside an edge its ${graph.unit}. ` +
      "Keys: arrows go from box to box, Enter opens and closes.");
    place.append(controls, holder, said, hint);
    page.graphed = { root, get shown() { return shown; }, get edges() { return edges; } };
    if (!hasConfigurations || root.children.reduce((sum, child) => sum + child.children.length, 0) > MOST_OPEN || !setAll(true, false)) draw();
  };
})(window.dfcompile);
