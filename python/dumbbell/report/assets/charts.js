/* The charts of a report: panels of one run that share their time axis. Drawn by uPlot.

   A <div class="charts" data-runs="id id"> becomes a legend, buttons and a panel for each quantity
   of the run whose packed text is in <script id>; with several runs there is a choice of the seed.
   Colours, markers and names of states are those of the page's <script id="looks">. */
"use strict";
(() => {
  const { unpack, make, said } = page;
  const looks = JSON.parse(document.getElementById("looks").textContent);
  const root = document.documentElement;
  const dashes = { "-": [], "--": [5, 3], ":": [1.5, 2.5], "-.": [6, 2.5, 1.5, 2.5] };
  const MARKS = 6;
  const ZOOM = 2;
  const READ = 4;
  const AXIS = 54;
  const STEPS = 100;

  const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  /** Ink, paper and what is faint follow the page; an algorithm's colour is the same everywhere. */
  const colour = (said) => (said in looks.neutral ? variable(looks.neutral[said]) : said);

  function swatch(flow) {
    const at = "http://www.w3.org/2000/svg";
    const drawing = document.createElementNS(at, "svg");
    drawing.setAttribute("viewBox", "-1.6 -0.75 3.2 1.5");
    drawing.setAttribute("class", "swatch");
    const stroke = flow.colour in looks.neutral ? `var(${looks.neutral[flow.colour]})` : flow.colour;
    const draw = (shape, style) => {
      const path = document.createElementNS(at, "path");
      path.setAttribute("d", shape);
      Object.assign(path.style, { stroke, strokeWidth: 0.25 }, style);
      drawing.append(path);
    };
    draw("M-1.6 0H1.6", { strokeDasharray: dashes[flow.dash].map((length) => length / 8).join(" ") });
    draw(looks.markers[flow.marker], { fill: flow.rank ? "var(--paper)" : stroke });
    return drawing;
  }

  /** Flows in groups of those that look alike. */
  function alike(flows) {
    const groups = new Map();
    for (const flow of flows) {
      const look = `${flow.cc} ${flow.colour} ${flow.dash} ${flow.marker}`;
      groups.set(look, [...(groups.get(look) ?? []), flow]);
    }
    return [...groups.values()];
  }

  const font = () => `11px ${getComputedStyle(document.body).fontFamily}`;
  const ruler = document.createElement("canvas").getContext("2d");
  /** A name as it fits beside an axis: of a long one its ends, as names of many flows differ there. */
  function fitted(name) {
    ruler.font = font();
    let [text, kept] = [name, name.length];
    while (ruler.measureText(text).width > AXIS - 10 && kept > 2) {
      kept -= 1;
      text = `${name.slice(0, Math.floor(kept / 2))}…${name.slice(-Math.ceil(kept / 2))}`;
    }
    return text;
  }
  const moment = (time) => `${Number(time.toFixed(3))} s`;

  const timesOf = (run) =>
    run.times.map((steps) => {
      let sum = 0;
      return steps.map((step) => (sum += step) / 1e6);
    });

  /** A run on the page. All its charts show the same span of time. */
  class Run {
    constructor(host, run) {
      this.host = host;
      this.run = run;
      this.span = [0, run.end];
      this.hidden = new Set();
      this.charts = [];
      this.key = `run-${Run.count++}`;
      this.build();
    }

    build() {
      this.host.replaceChildren(this.bar());
      const times = timesOf(this.run);
      this.run.panels.forEach((panel, number) => {
        const x = times[panel.x];
        const last = number === this.run.panels.length - 1;
        const flows = panel.link
          ? [{ name: null, colour: looks.faint, width: 0.8, dash: "-", marker: null, rank: 0 }]
          : this.run.flows;
        this.charts.push(this.chart(panel, x, flows, last));
        if (panel.title === "Throughput" && this.run.states.length) this.charts.push(this.bands());
      });
      keyboard(this.charts[0], this.host, this.run.end);
      const every = Math.max(...this.run.every);
      if (every > 1) {
        const note = `Drawn: minimum and maximum of every ${every} samples.`;
        this.host.append(make("p", { class: "small soft" }, note));
      }
    }

    bar() {
      const legend = make("div", { class: "legend" });
      for (const flows of alike(this.run.flows)) {
        const [{ name, cc }, label] = [flows[0], looks.labels[flows[0].cc]];
        const whose = flows.length > 1 ? `${flows.length} others` : name;
        const text = whose === cc ? label : `${whose}, ${label}`;
        const button = make("button", { type: "button", "aria-pressed": "true" }, swatch(flows[0]), text);
        button.addEventListener("click", () => flows.forEach((flow) => this.toggle(flow.name, button)));
        legend.append(button);
      }
      const tools = make("div", { class: "tools", role: "group", "aria-label": "Time axis" });
      const actions = [
        ["−", "Zoom out", () => this.zoom(ZOOM)],
        ["+", "Zoom in", () => this.zoom(1 / ZOOM)],
        ["◂", "Earlier", () => this.move(-0.5)],
        ["▸", "Later", () => this.move(0.5)],
        ["All", "The whole run", () => this.show(0, this.run.end)],
      ];
      for (const [text, title, act] of actions) {
        const button = make("button", { type: "button", title, "aria-label": title }, text);
        button.addEventListener("click", act);
        tools.append(button);
      }
      return make("div", { class: "bar" }, legend, tools);
    }

    chart(panel, x, flows, last) {
      const reading = make("span", { class: "reading" });
      const unit = make("span", { class: "soft" }, ` (${panel.unit})`);
      const head = make("div", { class: "head" }, make("b", {}, panel.title), unit, reading);
      const body = make("div", { class: "panel", "data-panel": panel.title });
      this.host.append(head, body);
      const isAlone = (values) => values.filter((value) => value !== null).length === 1;
      const series = flows.map((flow, i) => ({
        label: flow.name ?? panel.title,
        stroke: () => colour(flow.colour),
        width: flow.width * 1.3,
        dash: dashes[flow.dash],
        // One sample makes no line.
        points: isAlone(panel.y[i]) ? { show: true, size: 6, fill: colour(flow.colour) } : { show: false },
        spanGaps: false,
      }));
      const read = (u) => {
        const at = u.cursor.idx;
        if (at === null || at === undefined) return reading.replaceChildren();
        const values = flows.map((flow, i) => [flow.name, u.data[i + 1][at]]);
        const seen = values.filter(([name]) => !this.hidden.has(name)).slice(0, READ);
        const text = seen.map(([name, value]) => (panel.link ? said(value) : `${name} ${said(value)}`));
        reading.replaceChildren(`${moment(u.data[0][at])}: ${text.join(", ")}`);
      };
      const scale = (u, low, high) => [0, high > 0 ? high * 1.05 : 1];
      const options = this.options(150, last, { range: scale }, { size: AXIS });
      options.series.push(...series);
      options.hooks.setCursor = [read];
      options.hooks.drawSeries = [(u, i) => this.mark(u, i, flows[i - 1])];
      const chart = new uPlot(options, [x, ...panel.y], body);
      chart.flows = flows.map((flow) => flow.name);
      return chart;
    }

    /** A band for each flow that has states, in the states' colours. */
    bands() {
      const bands = this.run.states;
      const seen = new Set(bands.flatMap((band) => band.spans.map((span) => span[2])));
      const names = make("span", { class: "states" });
      const reading = make("span", { class: "reading" });
      for (const [name, fill] of looks.states) {
        if (!seen.has(name)) continue;
        const patch = make("i", { class: "patch" });
        patch.style.background = fill in looks.neutral ? `var(${looks.neutral[fill]})` : fill;
        names.append(make("span", { class: "state" }, patch, name), " ");
      }
      const body = make("div", { class: "panel", "data-panel": "State" });
      this.host.append(make("div", { class: "head" }, make("b", {}, "State"), names, reading), body);
      const fills = new Map(looks.states);
      const rows = {
        size: AXIS,
        splits: () => bands.map((_, row) => row),
        values: () => bands.map((band) => fitted(band.flow)),
        grid: { show: false },
      };
      const scale = { range: [-0.5, bands.length - 0.5], dir: -1 };
      const options = this.options(34 + 18 * bands.length, false, scale, rows);
      options.series.push({ show: true, points: { show: false } });
      const stateAt = ({ spans }, time) => spans.find(([begin, end]) => begin <= time && time < end)?.[2];
      options.hooks.setCursor = [
        (u) => {
          if (u.cursor.left < 0) return reading.replaceChildren();
          const time = u.posToVal(u.cursor.left, "x");
          const text = bands.slice(0, READ).map((band) => `${band.flow} ${stateAt(band, time) || "–"}`);
          reading.replaceChildren(`${moment(time)}: ${text.join(", ")}`);
        },
      ];
      options.hooks.draw = [
        (u) => {
          const { ctx, bbox } = u;
          ctx.save();
          ctx.beginPath();
          ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
          ctx.clip();
          bands.forEach((band, row) => {
            const [top, bottom] = [row - 0.38, row + 0.38].map((y) => u.valToPos(y, "y", true));
            for (const [begin, end, name] of band.spans) {
              const [left, right] = [begin, end].map((t) => u.valToPos(t, "x", true));
              ctx.fillStyle = colour(fills.get(name) ?? looks.faint);
              ctx.fillRect(left, Math.min(top, bottom), Math.max(right - left, 1), Math.abs(bottom - top));
            }
          });
          ctx.restore();
        },
      ];
      return new uPlot(options, [[0, this.run.end], [null, null]], body);
    }

    options(height, last, y, yAxis) {
      const axis = {
        stroke: () => variable("--soft"),
        font: font(),
        grid: { stroke: () => variable("--line"), width: 1 },
        ticks: { stroke: () => variable("--line"), width: 1, size: 4 },
      };
      const labelled = last ? { label: "time (s)", labelSize: 16, labelFont: axis.font, labelGap: 0 } : {};
      return {
        width: this.width(),
        height: last ? height + 16 : height,
        legend: { show: false },
        padding: [6, 10, 0, 0],
        scales: { x: { time: false, auto: false, min: 0, max: this.run.end }, y },
        axes: [
          { ...axis, size: 24, gap: 2, ...labelled },
          { ...axis, gap: 4, values: (u, ticks) => ticks.map(said), ...yAxis },
        ],
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: true, y: false, dist: 4 },
          bind: { dblclick: () => () => this.show(0, this.run.end) ?? null },
          sync: { key: this.key, scales: ["x", null], filters: { pub: (kind) => kind.startsWith("mousem") || kind === "mouseleave" } },
        },
        series: [{}],
        hooks: {
          ready: [(u) => touch(u)],
          setScale: [(u, key) => key === "x" && this.show(u.scales.x.min, u.scales.x.max)],
        },
      };
    }

    /** A few markers on a line, evenly spaced in the time that is shown. */
    mark(u, i, flow) {
      if (!flow.marker) return;
      const [x, y] = [u.data[0], u.data[i]];
      const { min, max } = u.scales.x;
      const { ctx, bbox } = u;
      const shape = new Path2D(looks.markers[flow.marker]);
      const size = 6.5 * (bbox.width / u.over.clientWidth);
      ctx.save();
      ctx.strokeStyle = colour(flow.colour);
      ctx.fillStyle = flow.rank ? variable("--paper") : ctx.strokeStyle;
      ctx.lineWidth = 0.2; // of the marker's size
      for (let k = 0; k < MARKS; k++) {
        const t = min + ((k + (flow.rank + 1) / 4) / MARKS) * (max - min);
        const at = u.valToIdx(t);
        if (y[at] === null || y[at] === undefined || x[at] < min || x[at] > max) continue;
        const [left, top] = [u.valToPos(x[at], "x", true), u.valToPos(y[at], "y", true)];
        ctx.setTransform(size, 0, 0, size, left, top);
        ctx.fill(shape);
        ctx.stroke(shape);
      }
      ctx.restore();
    }

    width() {
      return Math.max(240, Math.floor(this.host.clientWidth));
    }

    show(begin, end) {
      const width = Math.min(Math.max(end - begin, this.run.end / 1e4), this.run.end);
      const from = Math.min(Math.max(begin, 0), this.run.end - width);
      const near = (one, other) => Math.abs(one - other) < this.run.end * 1e-9;
      if (near(this.span[0], from) && near(this.span[1], from + width)) return;
      this.span = [from, from + width];
      for (const chart of this.charts) chart.setScale("x", { min: from, max: from + width });
      this.host.dataset.span = this.span.join(" ");
    }

    zoom(by) {
      const [begin, end] = this.span;
      const [middle, half] = [(begin + end) / 2, ((end - begin) / 2) * by];
      this.show(middle - half, middle + half);
    }

    move(by) {
      const step = (this.span[1] - this.span[0]) * by;
      this.show(this.span[0] + step, this.span[1] + step);
    }

    toggle(name, button) {
      const shown = this.hidden.delete(name);
      if (!shown) this.hidden.add(name);
      button.setAttribute("aria-pressed", String(shown));
      for (const chart of this.charts) {
        const at = chart.flows?.indexOf(name) ?? -1;
        if (at >= 0) chart.setSeries(at + 1, { show: shown });
      }
    }

    fit(width = this.width()) {
      for (const chart of this.charts) {
        if (chart.width !== width) chart.setSize({ width, height: chart.height });
        else chart.redraw(true, true);
      }
    }

    remove() {
      for (const chart of this.charts) chart.destroy();
    }
  }
  Run.count = 0;

  /** A finger that moves sideways selects, as a mouse does; up and down it scrolls the page. */
  function touch(u) {
    const { over } = u;
    over.style.touchAction = "pan-y";
    const tell = (kind, event, target = over) => {
      const { clientX, clientY } = event;
      const init = { clientX, clientY, movementX: 1, button: 0, bubbles: true };
      target.dispatchEvent(new MouseEvent(kind, init));
    };
    const of = (act) => (event) => event.pointerType === "touch" && act(event);
    over.addEventListener("pointerdown", of((event) => { tell("mousemove", event); tell("mousedown", event); }));
    over.addEventListener("pointermove", of((event) => tell("mousemove", event)));
    for (const end of ["pointerup", "pointercancel"]) {
      over.addEventListener(end, of((event) => tell("mouseup", event, document)));
    }
  }

  /** Arrow keys move the cursor over all panels, as a mouse does. */
  function keyboard(u, host, end) {
    const { over } = u;
    const set = (attributes) => Object.entries(attributes).forEach(([name, value]) => over.setAttribute(name, value));
    over.tabIndex = 0;
    set({ role: "slider", "aria-label": "Time; arrow keys read the values", "aria-valuemin": 0, "aria-valuemax": end, "aria-valuenow": 0 });
    over.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const [now, width] = [Math.max(u.cursor.left, 0), over.clientWidth];
      const left = Math.min(Math.max(now + (step * width) / STEPS, 0), width - 1);
      u.setCursor({ left, top: 0 }, true, true);
      const readings = [...host.querySelectorAll(".reading")].map((reading) => reading.textContent);
      set({ "aria-valuenow": Number(u.posToVal(left, "x").toPrecision(4)), "aria-valuetext": readings.join("; ") });
    });
  }

  const drawn = new Map();

  async function draw(host, id) {
    const run = await unpack(id);
    drawn.get(host)?.remove();
    drawn.set(host, new Run(host, run));
    host.dataset.drawn = id;
  }

  function begin(host) {
    if (drawn.has(host)) return;
    drawn.set(host, null);
    const ids = host.dataset.runs.split(" ");
    if (ids.length > 1) {
      const choice = make("select", {});
      for (const id of ids) {
        choice.append(make("option", { value: id }, `seed ${document.getElementById(id).dataset.seed}`));
      }
      const chosen = make("p", { class: "small paper-only" });
      const tell = () => (chosen.textContent = `Curves: ${choice.selectedOptions[0].textContent}`);
      choice.addEventListener("change", () => {
        tell();
        draw(host, choice.value);
      });
      tell();
      host.before(make("label", { class: "small" }, "Run: ", choice), chosen);
    }
    draw(host, ids[0]);
  }

  /** What is folded away is drawn when it is unfolded. */
  for (const host of document.querySelectorAll(".charts")) {
    const fold = host.closest("details");
    if (!fold || fold.open) begin(host);
    else fold.addEventListener("toggle", () => begin(host), { once: true });
  }

  const refit = (width) => drawn.forEach((run) => run?.fit(width));
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => refit(), 100);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => refit());
  const PAPER = 660;
  window.addEventListener("beforeprint", () => {
    root.classList.add("print");
    refit(PAPER);
  });
  window.addEventListener("afterprint", () => {
    root.classList.remove("print");
    refit();
  });
})();
