// Places for boxes in layers, one below the other, with few crossings and short edges; long edges bend in each layer
// between. The same graph has the same places each time.
"use strict";
(function (page) {
  const SWEEPS = 6;
  const GAP = 22;
  const PITCH = 34; // pixels between layers
  const BEND = 16; // pixels that an edge has to itself where it passes a layer
  const MOST_BENDS = 12000; // of all edges: beyond it long edges are drawn straight

  // Longest paths from the sources, boxes in their order where edges run in a circle; a source stands right above the
  // first box that it leads to.
  function layers(count, edges) {
    const into = Array.from({ length: count }, () => []);
    const out = Array.from({ length: count }, () => []);
    const waits = new Array(count).fill(0);
    for (const [source, target] of edges) {
      into[target].push(source);
      out[source].push(target);
      waits[target] += 1;
    }
    const layer = new Array(count).fill(-1);
    const ready = [];
    for (let box = 0; box < count; box++) if (!waits[box]) ready.push(box);
    let next = 0;
    for (let placed = 0; placed < count; placed++) {
      let box = ready.pop();
      while (box !== undefined && layer[box] >= 0) box = ready.pop();
      if (box === undefined) {
        while (layer[next] >= 0) next += 1;
        box = next;
      }
      layer[box] = Math.max(0, ...into[box].filter((source) => layer[source] >= 0).map((source) => layer[source] + 1));
      for (const target of out[box]) if (--waits[target] === 0) ready.push(target);
    }
    return layer.map((own, box) => {
      return into[box].length || !out[box].length ? own : Math.max(0, Math.min(...out[box].map((target) => layer[target])) - 1);
    });
  }

  // Move the boxes of a row to where they want to be, in their order, without overlap, by least squares: neighbours that
  // push one another stand side by side around the mean of their wishes.
  function spread(row, wanted, weights, sizes, centre) {
    const offsets = [0];
    for (let at = 1; at < row.length; at++) offsets.push(offsets[at - 1] + (sizes[row[at - 1]] + sizes[row[at]]) / 2 + GAP);
    const groups = [];
    row.forEach((box, at) => {
      let group = { wishes: weights[box] * (wanted[at] - offsets[at]), weight: weights[box], members: 1 };
      while (groups.length && groups.at(-1).wishes / groups.at(-1).weight >= group.wishes / group.weight) {
        const other = groups.pop();
        group = {
          wishes: group.wishes + other.wishes, weight: group.weight + other.weight, members: group.members + other.members,
        };
      }
      groups.push(group);
    });
    let at = 0;
    for (const { wishes, weight, members } of groups) {
      for (const last = at + members; at < last; at++) centre[row[at]] = wishes / weight + offsets[at];
    }
  }

  function places(sizes, rows, links) {
    const above = sizes.map(() => []);
    const below = sizes.map(() => []);
    for (const [source, target] of links) {
      below[source].push(target);
      above[target].push(source);
    }
    // A leaf follows its only neighbour: else it would push a chain aside at every step.
    const weights = sizes.map((_, box) => (above[box].length + below[box].length === 1 ? 0.02 : 1));
    const centre = sizes.map(() => 0);
    const mean = (boxes, otherwise) => {
      if (!boxes.length) return otherwise;
      let total = 0;
      let sum = 0;
      for (const box of boxes) {
        total += weights[box];
        sum += weights[box] * centre[box];
      }
      return sum / total;
    };
    for (const row of rows) spread(row, row.map(() => 0), weights, sizes, centre);
    for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
      const isDown = sweep % 2 === 0;
      const neighbours = isDown ? above : below;
      for (const row of isDown ? rows : [...rows].reverse()) {
        const wanted = new Map(row.map((box) => [box, mean(neighbours[box], centre[box])]));
        if (sweep < SWEEPS) row.sort((a, b) => wanted.get(a) - wanted.get(b));
        spread(row, row.map((box) => wanted.get(box)), weights, sizes, centre);
      }
    }
    return centre;
  }

  // Boxes have a width and a height, edges are pairs of their numbers; returns left and top of each box, the points at
  // which each edge bends, and the size of all.
  page.layOut = function (boxes, edges) {
    const layer = layers(boxes.length, edges);
    const spans = edges.map(([source, target]) => Math.max(layer[target] - layer[source] - 1, 0));
    const isRouted = d3.sum(spans) <= MOST_BENDS;
    const sizes = boxes.map((box) => box.width);
    const layerOf = [...layer];
    const links = [];
    const chains = edges.map(([source, target], at) => {
      const chain = [];
      let last = source;
      for (let step = 0; isRouted && step < spans[at]; step++) {
        chain.push(sizes.length);
        sizes.push(BEND);
        layerOf.push(layer[source] + 1 + step);
        links.push([last, chain.at(-1)]);
        last = chain.at(-1);
      }
      if (layerOf[last] < layer[target]) links.push([last, target]);
      return chain;
    });
    const rows = Array.from({ length: layerOf.reduce((most, own) => Math.max(most, own), -1) + 1 }, () => []);
    layerOf.forEach((own, box) => rows[own].push(box));
    const centre = places(sizes, rows, links);
    const left = boxes.reduce((least, box, at) => Math.min(least, centre[at] - box.width / 2), Infinity);
    const tops = [];
    let down = 0;
    rows.forEach((row) => {
      tops.push(down);
      down += Math.max(0, ...row.filter((box) => box < boxes.length).map((box) => boxes[box].height)) + PITCH;
    });
    const heights = tops.map((top, at) => (at + 1 < tops.length ? tops[at + 1] : down) - PITCH - top);
    return {
      places: boxes.map((box, at) => ({
        x: centre[at] - box.width / 2 - left, y: tops[layer[at]] + (heights[layer[at]] - box.height) / 2,
      })),
      bends: chains.map((chain) => chain.map((bend) => ({
        x: centre[bend] - left, top: tops[layerOf[bend]], bottom: tops[layerOf[bend]] + heights[layerOf[bend]],
      }))),
      width: boxes.reduce((most, box, at) => Math.max(most, centre[at] + box.width / 2 - left), 0),
      height: Math.max(down - PITCH, 0),
    };
  };
})(window.dfcompile);
