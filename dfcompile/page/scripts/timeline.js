// A schedule on a canvas: a row per processing element, a bar per task; it zooms and pans along time.
"use strict";
(function (page) {
  const HEIGHT = 420;
  const AXIS = 26;
  const MOST_ZOOM = 1e6;
  const LEAST_BAR = 0.4; // pixels: shorter tasks stay visible

  function unpacked(packed) {
    const columns = {};
    for (const name of ["family", "member", "pe", "start", "end", "block"]) columns[name] = page.column(packed[name]);
    const colours = packed.families.map(([, origin]) => page.colourOf(origin));
    // In the order of colours: a canvas is slow in changing them.
    const order = Uint32Array.from(columns.pe, (_, at) => at);
    const rank = packed.families.map(([, origin]) => page.rank(origin));
    order.sort((a, b) => rank[columns.family[a]] - rank[columns.family[b]]);
    return { ...packed, ...columns, order, colours };
  }

  function byElement(shown) {
    const rows = Array.from({ length: shown.pes }, () => []);
    for (let task = 0; task < shown.pe.length; task++) rows[shown.pe[task]].push(task);
    for (const row of rows) row.sort((a, b) => shown.start[a] - shown.start[b]);
    return rows;
  }

  page.taskName = function (shown, task) {
    const [family] = shown.families[shown.family[task]];
    return page.shown(shown.member[task] < 0 ? family : `${family}[${shown.member[task]}]`);
  };

  function sentence(shown, task) {
    const origin = page.shown(shown.families[shown.family[task]][1]);
    const from = page.number(shown.start[task]);
    const to = page.number(shown.end[task]);
    return `${page.taskName(shown, task)} of ${origin}: PE ${shown.pe[task]}, cycles ${from} to ${to}, block ${shown.block[task]}`;
  }

  page.timeline = function (place) {
    const canvas = page.element("canvas", { tabindex: "0", role: "img" });
    const said = page.element("p", { class: "said", "aria-live": "polite" });
    const controls = page.element("div", { class: "controls" });
    const context = canvas.getContext("2d");
    let shown = null;
    let rows = null;
    let across = d3.zoomIdentity;
    let isWaiting = false;

    function scale() {
      return across.rescaleX(d3.scaleLinear([0, Math.max(shown.makespan_cycles, 1)], [0, canvas.clientWidth]));
    }

    function axis(x, ink) {
      context.fillStyle = ink;
      context.font = "12px system-ui, sans-serif";
      for (const tick of x.ticks(Math.max(2, Math.floor(canvas.clientWidth / 130)))) {
        const place = x(tick);
        const half = context.measureText(page.number(tick)).width / 2;
        context.textAlign = place < half ? "left" : place > canvas.clientWidth - half ? "right" : "center";
        context.fillRect(place, HEIGHT - AXIS, 1, 5);
        context.fillText(page.number(tick), place, HEIGHT - 6);
      }
    }

    function bars(x, row) {
      const [begin, end] = x.domain();
      const perCycle = canvas.clientWidth / (end - begin);
      const high = row > 3 ? row - 1 : Math.max(row, 0.5);
      let colour = null;
      for (const task of shown.order) {
        if (shown.end[task] < begin || shown.start[task] > end) continue;
        const own = shown.colours[shown.family[task]];
        if (own !== colour) context.fillStyle = colour = own;
        const left = (shown.start[task] - begin) * perCycle;
        const wide = Math.max((shown.end[task] - shown.start[task]) * perCycle, LEAST_BAR);
        context.fillRect(left, shown.pe[task] * row, wide > 3 ? wide - 0.5 : wide, high);
      }
    }

    function paint() {
      isWaiting = false;
      const ratio = window.devicePixelRatio || 1;
      const width = canvas.clientWidth;
      if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
      if (canvas.height !== Math.round(HEIGHT * ratio)) canvas.height = Math.round(HEIGHT * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, HEIGHT);
      const x = scale();
      bars(x, (HEIGHT - AXIS) / shown.pes);
      axis(x, getComputedStyle(canvas).color);
    }

    function repaint() {
      if (!isWaiting) requestAnimationFrame(paint);
      isWaiting = true;
    }

    function under(event) {
      const [at, down] = d3.pointer(event, canvas);
      const row = Math.floor(down / ((HEIGHT - AXIS) / shown.pes));
      if (row < 0 || row >= shown.pes) return -1;
      const cycle = scale().invert(at);
      const tasks = rows[row];
      const place = d3.bisector((task) => shown.start[task]).right(tasks, cycle) - 1;
      return place >= 0 && shown.end[tasks[place]] >= cycle ? tasks[place] : -1;
    }

    // A wheel scrolls the page until the chart has the focus.
    const zoom = d3.zoom().scaleExtent([1, MOST_ZOOM])
      .filter((event) => !event.button && (event.type !== "wheel" || event.ctrlKey || document.activeElement === canvas))
      .on("zoom", (event) => {
        across = event.transform;
        page.zoomed = { k: across.k, x: across.x };
        repaint();
      });
    const selected = d3.select(canvas).call(zoom);

    function choose(number) {
      shown = unpacked(page.timelines[number]);
      rows = byElement(shown);
      canvas.setAttribute("aria-label", `${page.number(shown.pe.length)} tasks on ${shown.pes} processing elements over ` +
        `${page.number(shown.makespan_cycles)} cycles; plus and minus zoom, arrow keys move, 0 shows all`);
      selected.call(zoom.transform, d3.zoomIdentity);
      repaint();
    }

    const steps = {
      "+": () => selected.call(zoom.scaleBy, 2), "=": () => selected.call(zoom.scaleBy, 2),
      "-": () => selected.call(zoom.scaleBy, 0.5), "0": () => selected.call(zoom.transform, d3.zoomIdentity),
      ArrowLeft: () => selected.call(zoom.translateBy, canvas.clientWidth / 4 / across.k, 0),
      ArrowRight: () => selected.call(zoom.translateBy, -canvas.clientWidth / 4 / across.k, 0),
    };
    canvas.addEventListener("keydown", (event) => {
      if (!steps[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      steps[event.key]();
    });
    canvas.addEventListener("pointermove", (event) => {
      const task = under(event);
      said.textContent = task < 0 ? "" : sentence(shown, task);
    });

    for (const [key, name] of [["+", "zoom in"], ["-", "zoom out"], ["ArrowLeft", "earlier"], ["ArrowRight", "later"], ["0", "all"]]) {
      const button = page.element("button", { type: "button" }, name);
      button.addEventListener("click", steps[key]);
      controls.append(button);
    }
    if (page.timelines.length > 1) {
      const options = page.timelines.map((one, at) => page.element("option", { value: at }, page.shown(one.name)));
      const select = page.element("select", { "aria-label": "schedule" }, ...options);
      select.addEventListener("change", () => choose(Number(select.value)));
      controls.prepend(select);
    }
    const hint = page.element("p", { class: "hint" }, "A row per processing element, a bar per task, coloured by operator; " +
      "drag to move, click and turn the wheel to zoom; keys: + − ← → 0.");
    place.append(controls, canvas, said, hint);
    canvas.style.height = `${HEIGHT}px`;
    zoom.extent(() => [[0, 0], [canvas.clientWidth, HEIGHT]]);
    zoom.translateExtent([[0, 0], [Infinity, HEIGHT]]);
    new ResizeObserver(() => {
      zoom.translateExtent([[0, 0], [canvas.clientWidth, HEIGHT]]);
      if (shown) repaint();
    }).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    choose(0);
  };
})(window.dfcompile);
