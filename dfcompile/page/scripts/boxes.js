// The boxes of a dataflow graph: configurations hold operators, operators hold families of tasks and arrays.
"use strict";
(function (page) {
  const HEIGHT = 26; // pixels of a box
  const HEAD = 24; // pixels of the name of an open box
  const PAD = 12;
  const CHARACTER = 6.6; // pixels, of small letters
  const LONGEST = 34; // letters of a label

  function cut(name) {
    return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
  }

  function box(level, name, parent) {
    const made = { level, name, parent, children: [], isOpen: false, tasks: 0, arrays: 0, families: [], byKey: new Map() };
    if (parent) parent.children.push(made);
    return made;
  }

  function inside(parent, level, key, name) {
    return parent.byKey.get(key) || parent.byKey.set(key, box(level, name, parent)).get(key);
  }

  // The boxes of a graph; an operator of one family is that family, and a single configuration is left out.
  function tree(graph) {
    const { name, operator, kind, members, configuration } = graph.nodes;
    const root = box("graph", page.shown(graph.name), null);
    const several = new Set(configuration).size > 1;
    const called = (number) => (number in graph.configurations ? page.shown(graph.configurations[number]) : `configuration ${number}`);
    const leaves = name.map((own, at) => {
      const outer = several && configuration[at] >= 0
        ? inside(root, "configuration", configuration[at], called(configuration[at])) : root;
      const holder = inside(outer, "operator", operator[at], page.shown(operator[at]));
      const leaf = box("family", page.shown(own), holder);
      Object.assign(leaf, { kind: kind[at], members: members[at], operator: operator[at] });
      const counted = kind[at] === "buffer" ? "arrays" : "tasks";
      for (let up = leaf; up; up = up.parent) {
        up[counted] += members[at];
        up.families.push(at);
      }
      return leaf;
    });
    root.isOpen = true;
    return { root, leaves };
  }

  function isBranch(one) {
    return one.families.length > 1;
  }

  function shownOf(one) {
    let found = one;
    for (let up = one; up.parent; up = up.parent) if (!up.parent.isOpen) found = up.parent;
    return found;
  }

  function visible(one) {
    return one.isOpen ? one.children.flatMap(visible) : [one];
  }

  function text(one) {
    const count = one.level === "family" && one.members > 1 ? ` ×${page.number(one.members)}` : "";
    return cut(one.name) + count;
  }

  // All edges between boxes that are shown, and between what holds them, where a layout needs these.
  function lifted(graph, leaves) {
    const { source, target, edges, amount, in_memory: inMemory } = graph.edges;
    const found = new Map();
    for (let at = 0; at < source.length; at++) {
      const from = shownOf(leaves[source[at]]);
      const to = shownOf(leaves[target[at]]);
      if (from === to) continue;
      let ends = found.get(from);
      if (!ends) found.set(from, ends = new Map());
      let edge = ends.get(to);
      if (!edge) ends.set(to, edge = { from, to, edges: 0, amount: 0, inMemory: false });
      edge.edges += edges[at];
      edge.amount += amount[at];
      edge.inMemory ||= inMemory[at];
    }
    return [...found.values()].flatMap((ends) => [...ends.values()]);
  }

  function meeting(from, to) {
    const ups = new Map();
    for (let up = from; up.parent; up = up.parent) ups.set(up.parent, up);
    for (let up = to; up.parent; up = up.parent) if (ups.has(up.parent)) return [up.parent, ups.get(up.parent), up];
    throw new Error("two boxes of two graphs");
  }

  // Sizes and places, from the inside out; then places from the outside in.
  function arrange(one, routes) {
    if (!one.isOpen) {
      one.width = CHARACTER * text(one).length + 26;
      one.height = HEIGHT;
      return;
    }
    for (const child of one.children) arrange(child, routes);
    const number = new Map(one.children.map((child, at) => [child, at]));
    const own = routes.get(one) || [];
    const found = page.layOut(one.children, own.map(({ from, to }) => [number.get(from), number.get(to)]));
    one.children.forEach((child, at) => Object.assign(child, found.places[at]));
    own.forEach((route, at) => Object.assign(route, { bends: found.bends[at] }));
    const isRoot = !one.parent;
    one.shift = { x: isRoot ? 0 : PAD, y: isRoot ? 0 : HEAD + PAD };
    one.width = Math.max(found.width + 2 * one.shift.x, isRoot ? 0 : CHARACTER * text(one).length + 40);
    one.height = found.height + one.shift.y + (isRoot ? 0 : PAD);
  }

  function place(one, x, y) {
    one.x = x;
    one.y = y;
    if (one.isOpen) for (const child of one.children) place(child, x + one.shift.x + child.x, y + one.shift.y + child.y);
  }

  // The edges between boxes that are shown, and the ways between the boxes that a layout places beside each other.
  function routed(edges) {
    const routes = new Map();
    for (const edge of edges) {
      const [of, from, to] = meeting(edge.from, edge.to);
      const ways = routes.get(of) || routes.set(of, new Map()).get(of);
      const ends = ways.get(from) || ways.set(from, new Map()).get(from);
      edge.route = ends.get(to) || ends.set(to, { of, from, to, bends: [] }).get(to);
    }
    return new Map([...routes].map(([of, ways]) => [of, [...ways.values()].flatMap((ends) => [...ends.values()])]));
  }

  function path(edge) {
    const { from, to, route } = edge;
    const points = [{ x: from.x + from.width / 2, top: from.y + from.height, bottom: from.y + from.height }];
    const { x, y } = route.of;
    for (const bend of route.bends) {
      points.push({
        x: x + route.of.shift.x + bend.x, top: y + route.of.shift.y + bend.top, bottom: y + route.of.shift.y + bend.bottom,
      });
    }
    points.push({ x: to.x + to.width / 2, top: to.y - 5, bottom: to.y });
    let line = `M${points[0].x} ${points[0].bottom}`;
    for (let at = 1; at < points.length; at++) {
      const before = points[at - 1];
      const half = (points[at].top - before.bottom) / 2;
      line += `C${before.x} ${before.bottom + half} ${points[at].x} ${points[at].top - half} ${points[at].x} ${points[at].top}`;
      if (points[at].bottom !== points[at].top && at + 1 < points.length) line += `V${points[at].bottom}`;
    }
    return { line, end: points.at(-1), first: points[0], second: points[1] };
  }

  page.graphOf = function (graph) {
    const { root, leaves } = tree(graph);
    return {
      root, leaves,
      // Places all that is shown; returns the edges between these boxes.
      laidOut() {
        const edges = lifted(graph, leaves);
        arrange(root, routed(edges));
        place(root, PAD, PAD);
        return edges;
      },
    };
  };

  page.boxes = { height: HEIGHT, pad: PAD, isBranch, visible, text, path };
})(window.dfcompile);
