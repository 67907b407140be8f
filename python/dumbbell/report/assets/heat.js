/* Heat maps of a sweep: one metric over two of its axes, as a table that a reader can scroll, print
   and read aloud. <div class="heat" data-points="id"> names the <script id> with the packed points. */
"use strict";
(() => {
  const { unpack, make, said } = page;
  const MOST = 24;
  const BINS = 12;

  /** An axis as steps: its values or, if they are many, ranges of them. */
  function steps(axis) {
    if (axis.names.length <= MOST || axis.numbers === null) {
      return { names: axis.names, step: (place) => place };
    }
    const numbers = axis.numbers;
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const log = low > 0 && high / low >= 50;
    const scale = log ? Math.log : (x) => x;
    const back = log ? Math.exp : (x) => x;
    const width = (scale(high) - scale(low)) / BINS;
    const bin = (place) => Math.min(BINS - 1, Math.floor((scale(numbers[place]) - scale(low)) / width));
    const names = Array.from({ length: BINS }, (_, i) => `from ${said(back(scale(low) + i * width))}`);
    return { names, step: bin };
  }

  /** How many decimals show three digits of the largest and something of the smallest, as in tables. */
  function decimalsOf(values, fewest) {
    const sizes = values.map(Math.abs).filter((size) => size > 0);
    if (sizes.every(Number.isInteger)) return 0;
    const [largest, smallest] = [Math.max(...sizes), Math.min(...sizes)];
    if (largest >= 1000) return fewest;
    let decimals = Math.max(2 - Math.floor(Math.log10(largest)), 1, fewest);
    while (decimals < 3 && Number(smallest.toFixed(decimals)) === 0) decimals += 1;
    return Math.min(decimals, 20);
  }

  /** Writes numbers with as many decimals. */
  function fixed(values, fewest) {
    const decimals = decimalsOf(values, fewest);
    const options = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    // No sign for zero.
    return (value) => (Number(value.toFixed(decimals)) + 0).toLocaleString("en", options);
  }

  class Heat {
    constructor(host, data) {
      this.host = host;
      this.data = data;
      const names = Object.keys(data.axes);
      this.chosen = { metric: data.metrics[0].name, x: names[0], y: names[1] ?? names[0] };
      this.fixed = new Map();
      this.draw();
    }

    choice(label, options, value, act) {
      const select = make("select", {});
      for (const [name, text] of options) select.append(new Option(text, name, false, name === value));
      select.addEventListener("change", () => {
        act(select.value);
        this.draw();
        this.host.querySelector(`[data-choice="${label}"] select`)?.focus();
      });
      return make("label", { class: "small", "data-choice": label }, `${label} `, select);
    }

    choices() {
      const { axes, metrics } = this.data;
      const names = Object.keys(axes).map((name) => [name, name]);
      const bar = make("div", { class: "choices" });
      const of = (key) => (value) => (this.chosen[key] = value);
      const labels = metrics.map(({ name, label }) => [name, label]);
      bar.append(this.choice("Metric", labels, this.chosen.metric, of("metric")));
      if (names.length > 1) {
        bar.append(this.choice("across", names, this.chosen.x, of("x")), this.choice("down", names, this.chosen.y, of("y")));
      }
      for (const [name, axis] of Object.entries(axes)) {
        if (name === this.chosen.x || name === this.chosen.y || axis.names.length > MOST) continue;
        const options = [["", "mean of all"], ...axis.names.map((text, place) => [String(place), text])];
        const set = (value) => (value === "" ? this.fixed.delete(name) : this.fixed.set(name, Number(value)));
        bar.append(this.choice(name, options, String(this.fixed.get(name) ?? ""), set));
      }
      return bar;
    }

    /** The mean over the points of every cell, by row and column; infinite if one of them is. */
    cells(x, y, metric) {
      const { axes, points } = this.data;
      const sums = new Map();
      points[metric].forEach((value, i) => {
        if (value === null) return;
        for (const [name, place] of this.fixed) {
          if (name !== this.chosen.x && name !== this.chosen.y && axes[name].at[i] !== place) return;
        }
        const key = `${y.step(axes[this.chosen.y].at[i])} ${x.step(axes[this.chosen.x].at[i])}`;
        const [sum, count] = sums.get(key) ?? [0, 0];
        sums.set(key, [sum + Number(value), count + 1]);
      });
      return new Map([...sums].map(([key, [sum, count]]) => [key, sum / count]));
    }

    draw() {
      const { axes, metrics, shades, inks } = this.data;
      const metric = metrics.find(({ name }) => name === this.chosen.metric);
      const one = this.chosen.x === this.chosen.y;
      const x = steps(axes[this.chosen.x]);
      const y = one ? { names: [""], step: () => 0 } : steps(axes[this.chosen.y]);
      const cells = this.cells(x, y, metric.name);
      const values = [...cells.values()].filter(Number.isFinite);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const shown = fixed(values, metric.decimals);
      const head = make("tr", {}, make("th", { scope: "col" }, one ? "" : `${this.chosen.y} ↓  ${this.chosen.x} →`));
      for (const name of x.names) head.append(make("th", { scope: "col", class: "number" }, name));
      const body = make("tbody", {});
      y.names.forEach((name, row) => {
        const line = make("tr", {}, make("th", { scope: "row" }, name));
        x.names.forEach((_, column) => {
          const value = cells.get(`${row} ${column}`);
          const cell = make("td", { class: "number" }, Number.isFinite(value) ? shown(value) : "—");
          if (Number.isFinite(value)) {
            const share = high > low ? (value - low) / (high - low) : 0.5;
            const shade = Math.round(share * (shades.length - 1));
            cell.style.background = shades[shade];
            cell.style.color = inks[shade];
          }
          line.append(cell);
        });
        body.append(line);
      });
      const caption = make("caption", {}, make("b", {}, metric.label));
      const table = make("table", { class: "cells" }, caption, make("thead", {}, head), body);
      this.host.replaceChildren(this.choices(), make("div", { class: "scroll", tabindex: "0" }, table));
      this.host.dataset.drawn = `${metric.name} ${this.chosen.x} ${this.chosen.y}`;
    }
  }

  for (const host of document.querySelectorAll(".heat")) {
    unpack(host.dataset.points).then((data) => new Heat(host, data));
  }
})();
