// The figures of a page, drawn with uPlot from the JSON in each .plot (results/report/plots/plot_data.py): a reader points at a replicate to
// read its condition, seeds, key and counts, clicks it for its page, and hides a condition in all figures at once by its name.
// Whatever comes from the JSON is written as text, never as markup.
const known = JSON.parse(document.getElementById("replicates-data")?.textContent ?? "null");
const colour = (c) => typeof c === "number" ? css(`--c${c}`) : c === "ink" ? css("--ink") : c === "paper" ? css("--paper") : c;
const hidden = new Set(), plots = [], REACH = 16;
const NEAR_TEXT = "Point at the figure, or focus it and press the arrow keys.";

function textWidth(text) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// a label that fits into `room` pixels: a longer one goes without the sections of its options, then without its middle
function fitted(pen, label, room) {
  if (pen.measureText(label).width > room) label = label.replace(/\b(task|model|train|experiment)\./g, "");
  if (pen.measureText(label).width <= room) return label;
  let kept = label.length - 1;
  const cut = () => `${label.slice(0, Math.ceil(kept / 2))}…${label.slice(label.length - Math.floor(kept / 2))}`;
  while (kept > 2 && pen.measureText(cut()).width > room) kept--;
  return cut();
}

// round numbers along an axis that shows fewer than two of its ticks: a short one, or one that is zoomed in
function roundPlaces(low, high, log) {
  const [from, to] = log ? [10 ** low, 10 ** high] : [low, high], places = [];
  if (log) for (let power = Math.floor(low); power <= high; power++) for (const digit of [1, 2, 5]) places.push(power + Math.log10(digit));
  const inside = places.filter((at) => at >= low && at <= high);
  if (inside.length > 2) return inside;
  const rough = (to - from) / 5, unit = 10 ** Math.floor(Math.log10(rough)), step = unit * [1, 2, 5, 10].find((digit) => digit * unit >= rough);
  const count = Math.floor(to / step) - Math.ceil(from / step) + 1;
  return Array.from({ length: count }, (_, i) => (Math.ceil(from / step) + i) * step).map((at) => log ? Math.log10(at) : at);
}

// the fewest digits, at least 3, that show each of these ticks where it is: of 1.45, 1.475 and 1.5 the second is not 1.48
function digitsOf(places) {
  const apart = Math.min(...places.slice(1).map((at, i) => Math.abs(at - places[i]))) / 100;
  const rough = (at, digits) => Math.abs(Number(at.toPrecision(Math.abs(at) < .001 ? digits - 1 : digits)) - at) > apart;
  let digits = 3;
  while (digits < 12 && places.some((at) => rough(at, digits))) digits++;
  return digits;
}

// what an axis calls a place: the tick there, such as 0 or diverged, else the number
function called(axis, place, digits) {
  const reach = (label) => axis.bands && ["0", "diverged"].includes(label) ? .06 : 1e-3;  // their points fill a band
  const tick = axis.ticks.find(([at, label]) => Math.abs(at - place) < reach(label) * Math.abs(axis.to - axis.from));
  if (tick && (axis.kind === "names" || !(axis.kind === "linear"))) return tick[1];
  const within = axis.kind !== "log" || axis.ticks.every(([at, label]) => Number.isNaN(Number(label)) || label !== "0" || place > at);
  return axis.kind === "log" ? (within ? short(10 ** place) : "0") : short(place, digits);
}

// what a second vertical axis has at a place of the first one
const onRight = ({ y, right }, place) => right.from + (place - y.from) * (right.to - right.from) / (y.to - y.from);

function told(panel, mark, i) {
  if (mark.texts) return mark.texts[i];
  const row = mark.rows?.[mark.rows.length === 1 ? 0 : i], parts = [];
  if (known && row !== undefined) {
    parts.push(`${known.conditions[known.condition[row]]}: init seed ${known.init[row]}, data seed ${known.data[row]}, key ${known.key[row]}`);
    if (known.unfinished[row]) parts.push(known.unfinished[row].replace("_", " "));
    const sets = Object.entries(known.sets), here = sets.filter(([name]) => name === panel.title);
    for (const [name, counts] of here.length ? here : sets) {
      const errors = counts.errors[row], reads = Array.isArray(counts.reads) ? counts.reads[row] : counts.reads;
      if (errors !== null && reads) parts.push(`${name}: ${errors.toLocaleString("en")} of ${reads.toLocaleString("en")} wrong (${short(errors / reads)})`);
    }
  } else if (mark.name) parts.push(mark.name);
  if (!(mark.rows?.length > 1)) {
    const y = mark.right ? panel.right : panel.y, at = [mark.x[i], mark.right ? onRight(panel, mark.y[i]) : mark.y[i]];
    parts.push(`${panel.x.label || "x"} ${called(panel.x, at[0])}, ${y.label || panel.named || "y"} ${called(y, at[1])}`);
  }
  return parts.join(" · ");
}

function drawMark(u, pen, mark, x, y, quiet) {
  if (mark.quiet && !quiet) return;
  const ratio = devicePixelRatio || 1, place = (i) => [x(mark.x[i]), y(mark.y[i])];
  pen.globalAlpha = mark.a ?? 1;
  pen.fillStyle = pen.strokeStyle = colour(mark.c ?? "ink");
  pen.lineWidth = (mark.w || 1) * ratio * 1.1;
  pen.setLineDash((mark.d ?? []).map((length) => length * ratio));
  const { left, top, width, height } = u.bbox;
  if (mark.span) {
    const [from, to] = mark.ends.map(mark.span === "x" ? x : y);
    if (mark.span === "x") pen.fillRect(from, top, to - from, height); else pen.fillRect(left, from, width, to - from);
  } else if (mark.rule) {
    const at = (mark.rule === "x" ? x : y)(mark.at);
    pen.beginPath();
    if (mark.rule === "x") { pen.moveTo(at, top); pen.lineTo(at, top + height); } else { pen.moveTo(left, at); pen.lineTo(left + width, at); }
    pen.stroke();
  } else if (mark.area) {
    for (const part of mark.area) {
      pen.beginPath();
      part.x.forEach((value, i) => value !== null && part.y[i] !== null && pen.lineTo(x(value), y(part.y[i])));
      pen.fill();
    }
  } else if (mark.cells) {
    const size = Math.max(8, Math.min(12, Math.abs(x(1) - x(0)) / ratio / 3.2)) * ratio;
    pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    for (const [column, row, fill] of mark.cells) {
      pen.fillStyle = fill;
      pen.fillRect(x(column), y(row), x(column + 1) - x(column) + .5, y(row + 1) - y(row) + .5);
    }
  } else if (mark.text) {
    const wide = Math.abs(x(1) - x(0)) / ratio, size = mark.cell ? Math.min(12, wide / 2.9) : mark.size * 1.25;
    if (mark.cell && size < 6) return;
    pen.font = `${size * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    pen.textAlign = mark.h; pen.textBaseline = { top: "top", bottom: "bottom", center: "middle" }[mark.v] ?? "alphabetic";
    pen.fillText(mark.text, x(mark.x) + mark.shift[0] * 1.25 * ratio, y(mark.y) - mark.shift[1] * 1.25 * ratio);
  } else if (mark.x) {
    if (mark.w) {
      let down = false, before = 0;
      pen.beginPath();
      mark.x.forEach((value, i) => {
        if (value === null || mark.y[i] === null) { down = false; return; }
        const [px, py] = place(i);
        if (down && mark.s) pen.lineTo(px, before);
        if (down) pen.lineTo(px, py); else pen.moveTo(px, py);
        down = true; before = py;
      });
      pen.stroke();
    }
    pen.setLineDash([]);
    const shape = SHAPES[mark.m];
    if (shape) {
      const [first, step] = mark.every ?? [0, 1], r = mark.r * 1.25 * ratio;
      for (let i = first; i < mark.x.length; i += step) {
        if (mark.x[i] === null || mark.y[i] === null) continue;
        pen.beginPath();
        shape(pen, ...place(i), r);
        if (mark.hollow || mark.m === "x") { pen.lineWidth = 1.5 * ratio; pen.stroke(); } else pen.fill();
      }
    }
  }
  pen.globalAlpha = 1;
  pen.setLineDash([]);
}

function breaks(u, pen, mark, x, y) {  // two strokes where an axis is broken
  const ratio = devicePixelRatio || 1, { left, top, height } = u.bbox;
  const at = mark.break === "x" ? [x(mark.at), top + height] : [left, y(mark.at)], [dx, dy] = mark.break === "x" ? [3, 6] : [6, 3];
  pen.strokeStyle = css("--ink"); pen.lineWidth = ratio;
  pen.beginPath(); pen.moveTo(at[0] - dx * ratio, at[1] + dy * ratio); pen.lineTo(at[0] + dx * ratio, at[1] - dy * ratio); pen.stroke();
}

class Panel {
  constructor(figure, data, box) {
    Object.assign(this, { figure, data, box, chosen: null, near: null, marks: data.marks });
    this.points = [];  // what can be pointed at: [mark, index]
    const spoken = data.marks.some((mark) => mark.texts || mark.rows);  // then nameless markers only adorn it
    const single = new Set(data.marks.filter((mark) => mark.rows).map((mark) => mark.name));  // names of which each replicate is drawn
    data.marks.forEach((mark) => {
      const summary = !mark.rows && !mark.m && single.has(mark.name);
      if (mark.texts || (!summary && (mark.name || mark.rows || (mark.m && !spoken)) && Array.isArray(mark.x))) mark.x.forEach((value, i) => value !== null && mark.y[i] !== null && this.points.push([mark, i]));
      if (mark.cells) for (const [column, row, , value] of mark.cells) this.points.push([{ x: [column + .5], y: [row + .5], texts: [`${this.tick(data.y, row + .5)}, ${data.x.label} ${this.tick(data.x, column + .5)}: ${(100 * value).toFixed(1)} %`] }, 0]);
      if (mark.text && data.marks.some((other) => other.cells)) mark.cell = true;
    });
    this.points.sort(([a, i], [b, j]) => a.x[i] - b.x[j] || a.y[i] - b.y[j]);
    if (data.title) box.append(element("div", data.title, "plot-title"));
    this.holder = box.appendChild(element("div"));
    this.holder.tabIndex = 0;
    this.holder.setAttribute("role", "application");
    this.holder.setAttribute("aria-label", `${data.title || figure.title}: ${data.y.label || "chart"}${data.x.label ? ` by ${data.x.label}` : ""}. Arrow keys go from point to point, Enter opens a replicate.`);
    this.ring = element("div", "", "plot-ring");
    this.ring.hidden = true;
    this.build();
    this.holder.addEventListener("keydown", (event) => this.key(event));
    this.holder.addEventListener("click", () => this.near && this.figure.open(this));
  }

  tick(axis, place) { return axis.ticks.find(([at]) => Math.abs(at - place) < .01)?.[1] ?? ""; }

  size() {
    const width = Math.max(this.holder.clientWidth, 200), [w, h] = this.data.shape;
    const names = this.data.y.kind === "names" ? this.data.y.ticks.length * 17 + 60 : 0;
    const turned = this.turned(width), below = turned ? turned.size - 24 : 0;  // turned names take no room from the plot
    const least = Math.max(210, textWidth(this.data.named ?? "") + 74);  // the name of the axis stands beside the plot
    return { width, height: Math.round(below + Math.max(names, Math.min(Math.max(width * Math.min(h / w, .95), least), 430))) };
  }

  // names below the plot that would overlap are turned: the room that they take below it and to the right of the last one
  turned(width) {
    const axis = this.data.x, widest = axis.kind === "names" ? this.widest(axis) : 0;
    if (widest * axis.ticks.length * 1.1 <= width - 80) return null;
    return { size: Math.min(widest * .8, 150) + 18, right: Math.max(14, Math.min(widest, 170) * .64) };
  }

  widest(axis) {
    const digits = digitsOf(axis.ticks.map(([at]) => at));
    return Math.max(...axis.ticks.map(([at, label]) => textWidth(axis.kind === "linear" ? short(at, digits) : label)), 8);
  }

  axis(axis, side) {
    const horizontal = side % 2 === 0, pen = document.createElement("canvas").getContext("2d");
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const width = this.size().width, widest = this.widest(axis), turned = horizontal ? this.turned(width) : null;
    const room = horizontal ? (axis.kind === "names" && turned ? 170 : Infinity) : width * .5 - 6;
    const shown = (u, low, high) => axis.ticks.filter(([at]) => at >= low - 1e-9 && at <= high + 1e-9);
    return {
      side, stroke: () => css("--ink"), font: `12px ${getComputedStyle(document.body).fontFamily}`, labelFont: `12px ${getComputedStyle(document.body).fontFamily}`,
      label: axis.label ? fitted(pen, axis.label, horizontal ? width - 60 : this.size().height - 30 - (this.turned(width)?.size ?? 0)) : undefined, labelSize: axis.label ? 20 : 0, labelGap: 0, gap: 4,
      size: horizontal ? (turned ? turned.size : 24) : (u, labels) => Math.max(8, ...(labels ?? []).map((label) => pen.measureText(label).width)) + 12,
      rotate: turned ? -50 : 0,
      splits: (u, i, low, high) => {
        const inside = shown(u, Math.min(low, high), Math.max(low, high)).map(([at]) => at);
        if (inside.length > 1 || axis.kind === "names") {
          const room = horizontal ? (this.size().width - 80) / Math.max(widest + 16, 1) : this.size().height / 20;
          const step = axis.kind === "names" || (horizontal && axis.kind === "log") ? 1 : Math.ceil(inside.length / Math.max(room, 1));
          return inside.filter((_, i) => i % step === 0);
        }
        return roundPlaces(low, high, axis.kind === "log");
      },
      values: (u, splits) => {
        const places = splits.map((at) => side === 1 ? onRight(this.data, at) : at), digits = digitsOf(places);
        const texts = places.map((at) => fitted(pen, called(axis, at, digits), room));
        if (!horizontal || axis.kind === "names") return texts;
        const pixels = (width - Math.min(this.widest(this.data.y), width * .5) - 60) / Math.abs(u.scales.x.max - u.scales.x.min);
        const [last, ...others] = [...splits.keys()].sort((a, b) => splits[b] - splits[a]), wide = (i) => pen.measureText(texts[i]).width;
        let kept = last;
        for (const i of others) {  // of two that would overlap, such as 1 and diverged, the right one stays
          if ((splits[kept] - splits[i]) * pixels - (wide(i) + wide(kept)) / 2 < 3) texts[i] = ""; else kept = i;
        }
        return texts;
      },
      grid: { stroke: () => css("--line"), width: 1, show: axis.grid }, ticks: { stroke: () => css("--soft"), width: 1, size: 4 },
      border: { show: true, stroke: () => css("--soft"), width: 1 },
      ...(side === 1 ? { scale: "y", grid: { show: false } } : {}),  // the right one's ticks are at places of the left one
    };
  }

  build() {
    const { x, y, right } = this.data, range = (axis) => [Math.min(axis.from, axis.to), Math.max(axis.from, axis.to)];
    const [xs, ys] = [range(x), range(y)];
    const font = { ...this.size() };
    this.u?.destroy();
    this.u = new uPlot({
      ...font, legend: { show: false }, padding: [8, this.turned(font.width)?.right ?? (right ? 0 : 14), 0, 0],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: true, uni: 30, dist: 8 }, focus: { prox: -1 } },
      scales: { x: { time: false, dir: x.from > x.to ? -1 : 1, range: (u, low, high) => [low, high] }, y: { dir: y.from > y.to ? -1 : 1, range: (u, low, high) => [low, high] } },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [this.axis(x, 2), this.axis(y, 3), ...(right ? [this.axis(right, 1)] : [])],
      hooks: { drawClear: [(u) => this.paint(u, true)], draw: [(u) => this.paint(u, false)], setCursor: [(u) => this.point(u)] },
    }, [xs, ys], this.holder);
    this.u.over.append(this.ring);
  }

  paint(u, behind) {
    const pen = u.ctx, x = (value) => u.valToPos(value, "x", true), y = (value) => u.valToPos(value, "y", true);
    const { left, top, width, height } = u.bbox;
    pen.save();
    pen.beginPath(); pen.rect(left, top, width, height); pen.clip();
    for (const mark of this.marks) {
      if (mark.break || Boolean(mark.span) !== behind || hidden.has(mark.name)) continue;
      drawMark(u, pen, mark, x, y, mark.name === this.figure.near);
    }
    pen.restore();
    if (!behind) for (const mark of this.marks) if (mark.break) breaks(u, pen, mark, x, y);
  }

  place([mark, i]) { return [this.u.valToPos(mark.x[i], "x"), this.u.valToPos(mark.y[i], "y")]; }

  point(u) {
    const { left, top } = u.cursor;
    if (left < 0) return;
    let found = null, least = REACH ** 2;
    for (const point of this.points) {
      if (hidden.has(point[0].name)) continue;
      const [px, py] = this.place(point), distance = (px - left) ** 2 + (py - top) ** 2 - (point[0].rows ? 4 : 0);
      if (distance < least) { least = distance; found = point; }
    }
    this.show(found);
  }

  show(point) {
    if (point === this.near) return;
    this.near = point;
    this.ring.hidden = !point;
    this.figure.say(point ? told(this.data, ...point) : "");
    if (point) { const [x, y] = this.place(point); this.ring.style.left = `${x}px`; this.ring.style.top = `${y}px`; }
    this.figure.emphasise(point?.[0].name ?? null);
  }

  key(event) {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key], open = this.points.filter(([mark]) => !hidden.has(mark.name));
    if (way && open.length) {
      const at = open.indexOf(this.near);
      this.show(open[Math.min(Math.max(at + way, 0), open.length - 1)]);
    } else if (event.key === "Enter" && this.near) this.figure.open(this);
    else if (event.key === "Escape") this.show(null);
    else return;
    event.preventDefault();
  }
}

const rank = (mark) => (mark.hollow ? 0 : 4) * Boolean(mark.m) + 2 * (mark.w >= 1.2) + (mark.a > .5);  // the mark that stands for a name

class Figure {
  constructor(box) {
    const data = JSON.parse(box.querySelector("script").textContent), names = new Map();
    this.box = box;
    this.near = null;
    this.title = box.closest("figure")?.querySelector("figcaption b")?.textContent ?? "Figure";
    for (const panel of data.panels) for (const mark of panel.marks) {
      panel.named = panel.y.label || data.panels[0].y.label;
      if (mark.name && mark.c !== undefined && (!names.has(mark.name) || rank(mark) > rank(names.get(mark.name)))) names.set(mark.name, mark);
    }
    this.legend = element("ul", "", "plot-legend");
    if (names.size > 1) {
      this.legend.setAttribute("aria-label", "Hide or show in all figures");
      const order = known?.conditions.filter((name) => names.has(name)) ?? [];  // of conditions the same in every figure
      for (const name of order.length === names.size ? order : names.keys()) this.entry(name, names.get(name));
      box.append(this.legend);
    }
    const grid = box.appendChild(element("div", "", "plot-panels"));
    const many = data.columns > 3, wide = data.panels.length === 4 || data.panels[0]?.shape[0] > 4.6 || data.panels[0]?.y.kind === "names";
    grid.style.setProperty("--columns", Math.min(data.panels.length, many ? data.columns : wide ? 2 : 3));
    if (many) grid.style.setProperty("--least", "12rem");
    if (data.panels[0]?.y.kind !== "names") grid.style.maxWidth = `${data.panels.length * data.panels[0]?.shape[0] * 150}px`;
    this.live = box.appendChild(element("p", NEAR_TEXT, "plot-live"));
    this.live.setAttribute("role", "status");
    this.panels = data.panels.map((panel) => new Panel(this, panel, grid.appendChild(element("div", "", "plot-panel"))));
    const fit = () => {
      this.legend.classList.toggle("long", this.legend.scrollHeight > this.legend.clientHeight + 1);
      for (const panel of this.panels) {
        const size = panel.size();
        if (size.width !== panel.u.width || size.height !== panel.u.height) panel.build();
      }
    };
    new ResizeObserver(() => requestAnimationFrame(fit)).observe(grid);  // not within the observer, which would see its own change
  }

  entry(name, mark) {
    const item = element("li"), button = element("button"), glyph = element("span", GLYPHS[mark.m] ?? "━");
    button.type = "button";
    glyph.style.color = typeof mark.c === "number" ? `var(--c${mark.c})` : mark.c === "ink" ? "var(--ink)" : mark.c;
    glyph.setAttribute("aria-hidden", "true");
    button.append(glyph, ` ${name}`);
    button.setAttribute("aria-pressed", "true");
    button.dataset.name = name;
    button.addEventListener("click", (event) => toggle(name, event.shiftKey || event.detail === 2));
    item.append(button); this.legend.append(item);
  }

  emphasise(name) {
    if (name === this.near) return;
    this.near = name;
    if (this.panels.some((panel) => panel.marks.some((mark) => mark.quiet))) this.redraw();
  }

  say(text) { this.live.textContent = text || NEAR_TEXT; }

  // a replicate's own page where it has been written, else the command that writes it
  open(panel) {
    const [mark, i] = panel.near, row = mark.rows?.[mark.rows.length === 1 ? 0 : i];
    if (!known || row === undefined) return;
    const key = known.key[row], page = known.pages.find((name) => name === `replicate-${key}.html`);
    if (page && /^replicate-[0-9A-Za-z_-]+\.html$/.test(page)) { location.href = page; return; }
    this.live.replaceChildren(`${told(panel.data, mark, i)} · To write its page: `, element("code", `manyseeds report STORE ${known.study} --key ${key}`));
  }

  redraw() { this.panels.forEach((panel) => panel.u.redraw(false)); }
}

// hide or show a name; `alone`: show nothing else, or everything again
function toggle(name, alone) {
  const buttons = [...document.querySelectorAll(".plot-legend button")], others = buttons.map((button) => button.dataset.name).filter((other) => other !== name);
  if (!alone) hidden.delete(name) || hidden.add(name);
  else if (others.every((other) => hidden.has(other))) hidden.clear();
  else { hidden.delete(name); others.forEach((other) => hidden.add(other)); }
  for (const button of buttons) button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.name)));
  for (const figure of plots) figure.redraw();
}

for (const box of document.querySelectorAll(".plot")) plots.push(new Figure(box));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((figure) => figure.redraw()));
