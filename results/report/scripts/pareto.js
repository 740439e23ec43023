// The Pareto figure: every replicate's dense error against its sparse one, and one replicate's curve beside it.
// Reads the JSON block #pareto-data; whatever comes from it is written as text, never as markup.
const data = JSON.parse(document.getElementById("pareto-data").textContent);
const box = document.getElementById("pareto-box"), plot = document.getElementById("pareto-plot");
const ring = document.getElementById("pareto-ring"), live = document.getElementById("pareto-live");
const panel = document.getElementById("pareto-curve"), legend = document.getElementById("pareto-legend");
const names = data.conditions.map((condition) => condition.name);
const points = [];
data.conditions.forEach((condition, c) => condition.keys.forEach((key, i) => points.push({
  c, key, init: condition.init[i], data: condition.data[i], x: condition.sparse[i], y: condition.dense[i],
})));
const worst = (value) => value === null ? Infinity : value;  // null: diverged
const rate = (value) => value === null ? "diverged" : short(value);

const decade = (k) => k === 0 ? "1" : "10" + superscript(k);
const colour = (c) => css(`--c${c % 12 + 1}`);

// an axis: whole decades for the positive rates, a band of its own for 0 below them and for diverged above
function axisOf(values) {
  let least = Infinity, most = 0, zeros = false, diverged = false;
  for (const value of values) {
    if (value === null) diverged = true;
    else if (value === 0) zeros = true;
    else { least = Math.min(least, value); most = Math.max(most, value); }
  }
  const high = most ? Math.ceil(Math.log10(most)) : 0;
  return { low: Math.min(least < Infinity ? Math.floor(Math.log10(least)) : -2, high - 2), high, zeros, diverged };
}

// from pixel `from` to pixel `to`; the bands take 34 pixels each
function scaleOf(axis, from, to) {
  const way = Math.sign(to - from), start = from + (axis.zeros ? 46 * way : 8 * way), end = to - (axis.diverged ? 46 * way : 8 * way);
  const at = (k) => start + (end - start) * (k - axis.low) / (axis.high - axis.low);
  return {
    axis, from, to, at, zero: from + 17 * way, diverged: to - 17 * way, way,
    place: (value) => value === null ? to - 17 * way : value === 0 ? from + 17 * way : at(Math.log10(value)),
  };
}

function spread(i, base) {  // van der Corput's sequence in −1 … 1: the same every time
  let place = 0, digit = 1 / base;
  for (let n = i + 1; n > 0; n = Math.floor(n / base)) { place += digit * (n % base); digit /= base; }
  return 2 * place - 1;
}

const xs = axisOf(points.map((p) => p.x)), ys = axisOf(points.map((p) => p.y));
const seen = { x: [0, 0], y: [0, 0] };
for (const p of points) {
  for (const [name, base] of [["x", 2], ["y", 3]]) {
    const value = p[name];
    p["jitter" + name] = value === 0 || value === null ? 13 * spread(seen[name][value === 0 ? 0 : 1]++, base) : 0;
  }
}
const order = {
  x: points.map((_, i) => i).sort((a, b) => worst(points[a].x) - worst(points[b].x) || worst(points[a].y) - worst(points[b].y) || a - b),
  y: points.map((_, i) => i).sort((a, b) => worst(points[a].y) - worst(points[b].y) || worst(points[a].x) - worst(points[b].x) || a - b),
};
let chosen = -1, only = -1, X, Y;

function surface(canvas, width, height) {
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  return penOf(canvas, width, height);
}

function ticks(axis, room) {
  const found = [], step = Math.max(1, Math.ceil((axis.high - axis.low) * 44 / Math.max(room, 44)));
  for (let k = axis.high; k >= axis.low; k -= step) found.push(k);
  return found;
}

function frame(pen, x, y, labels, numeric) {
  const ink = css("--ink"), soft = css("--soft"), line = css("--line"), tint = css("--tint");
  pen.fillStyle = tint;
  if (x.axis.zeros) pen.fillRect(x.from, y.to, 34, y.from - y.to);
  if (x.axis.diverged) pen.fillRect(x.to - 34, y.to, 34, y.from - y.to);
  if (y.axis.zeros) pen.fillRect(x.from, y.from - 34, x.to - x.from, 34);
  if (y.axis.diverged) pen.fillRect(x.from, y.to, x.to - x.from, 34);
  pen.strokeStyle = line; pen.lineWidth = 1; pen.fillStyle = soft;
  const rule = (x0, y0, x1, y1) => { pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke(); };
  pen.textAlign = "center"; pen.textBaseline = "top";
  if (numeric) for (const step of numeric) pen.fillText(step.toLocaleString("en"), x.at(step), y.from + 6);
  else for (const k of ticks(x.axis, Math.abs(x.at(x.axis.high) - x.at(x.axis.low)))) { rule(x.at(k), y.from, x.at(k), y.to); pen.fillText(decade(k), x.at(k), y.from + 6); }
  if (x.axis.zeros) pen.fillText("0", x.zero, y.from + 6);
  if (x.axis.diverged) pen.fillText("diverged", Math.min(x.diverged, x.to - 20), y.from + 20);
  pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const k of ticks(y.axis, Math.abs(y.at(y.axis.high) - y.at(y.axis.low)))) { rule(x.from, y.at(k), x.to, y.at(k)); pen.fillText(decade(k), x.from - 7, y.at(k)); }
  if (y.axis.zeros) pen.fillText("0", x.from - 7, y.zero);
  if (y.axis.diverged) pen.fillText("diverged", x.from - 5, y.diverged);
  pen.strokeStyle = soft;
  rule(x.from, y.from, x.to, y.from); rule(x.from, y.from, x.from, y.to);
  pen.fillStyle = ink; pen.textAlign = "left"; pen.textBaseline = "alphabetic";
  pen.fillText(labels[1], 2, y.to - 10, x.to - 4);
  pen.textAlign = "center";
  pen.fillText(labels[0], (x.from + x.to) / 2, y.from + 42, x.to - x.from);
}

const MARKERS = Object.keys(GLYPHS), marker = (c) => MARKERS[(c + Math.floor(c / 12)) % 6];

function draw() {
  const width = Math.max(box.clientWidth, 260), height = Math.round(Math.min(Math.max(width * .72, 340), 560));
  const pen = surface(plot, width, height);
  X = scaleOf(xs, 58, width - 8); Y = scaleOf(ys, height - 50, 28);
  frame(pen, X, Y, [`error rate, ${data.sparse}`, `error rate, ${data.dense}`]);
  const size = points.length > 2000 ? 2.6 : points.length > 300 ? 3.4 : 4.4, colours = names.map((_, c) => colour(c));
  pen.lineWidth = .6; pen.strokeStyle = css("--paper");
  for (const p of points) {
    p.px = X.place(p.x) + p.jitterx; p.py = Y.place(p.y) + p.jittery;
    pen.globalAlpha = only < 0 || p.c === only ? .8 : .08;
    pen.fillStyle = colours[p.c];
    pen.beginPath(); SHAPES[marker(p.c)](pen, p.px, p.py, size); pen.fill(); pen.stroke();
  }
  pen.globalAlpha = 1; pen.strokeStyle = css("--ink"); pen.lineWidth = 1.8; pen.beginPath();
  data.front.forEach(([x, y], i) => {  // better in neither: a staircase, as what lies on it is what was reached
    const px = X.place(x), py = Y.place(y);
    if (i === 0) pen.moveTo(px, py); else { pen.lineTo(px, Y.place(data.front[i - 1][1])); pen.lineTo(px, py); }
  });
  pen.stroke();
  for (const [x, y] of data.front) { pen.beginPath(); pen.arc(X.place(x), Y.place(y), 6, 0, 7); pen.stroke(); }
  mark();
}

function mark() {
  ring.hidden = chosen < 0;
  if (chosen < 0) return;
  ring.style.left = `${points[chosen].px}px`; ring.style.top = `${points[chosen].py}px`;
}

function describe(p) {
  return `${names[p.c]}: init seed ${p.init}, data seed ${p.data}, key ${p.key}. ${data.sparse} ${rate(p.x)}, ${data.dense} ${rate(p.y)}.`;
}

function choose(i) {
  if (i === chosen || i < 0) return;
  chosen = i;
  live.textContent = describe(points[i]) + " Click or Enter: its curve.";
  mark();
}

function nearest(event, reach) {
  const area = plot.getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top;
  let found = -1, least = reach * reach;
  points.forEach((p, i) => {
    const distance = (p.px - x) ** 2 + (p.py - y) ** 2;
    if (distance < least && (only < 0 || p.c === only)) { least = distance; found = i; }
  });
  return found;
}

plot.addEventListener("pointermove", (event) => choose(nearest(event, 14)));
plot.addEventListener("click", (event) => { const i = nearest(event, 24); if (i >= 0) { choose(i); open(); } });
plot.addEventListener("keydown", (event) => {
  const by = { ArrowRight: ["x", 1], ArrowLeft: ["x", -1], ArrowUp: ["y", 1], ArrowDown: ["y", -1], Home: ["x", 0], End: ["x", 0] }[event.key];
  if (by) {
    const line = order[by[0]].filter((i) => only < 0 || points[i].c === only);
    const at = line.indexOf(chosen);
    const end = line.length - 1;
    const to = event.key === "End" ? end : event.key === "Home" || at < 0 ? 0 : Math.min(Math.max(at + by[1], 0), end);
    choose(line[to]);
  } else if (event.key === "Enter" && chosen >= 0) open();
  else if (event.key === "Escape") panel.hidden = true;
  else return;
  event.preventDefault();
});

function open() {
  const p = points[chosen], curve = data.curves[chosen], command = `manyseeds report STORE ${data.study} --key ${p.key}`;
  panel.hidden = false;
  panel.replaceChildren(element("h3", `Replicate ${p.key}`), element("p", describe(p)));
  const how = element("p", curve ? "Its own page: " : "Its curve is not among those embedded in this page. To draw it: ");
  how.append(element("code", command));
  if (curve) {
    const canvas = document.createElement("canvas"), [known, errors] = curve, steps = data.steps[known], best = [];
    errors.forEach((error, i) => best.push(error === null ? (best[i - 1] ?? null) : Math.min(error, best[i - 1] ?? 1)));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Error on ${data.online} at ${steps.length} steps: ${rate(errors.at(-1))} at step ${steps.at(-1)}, at best ${rate(best.at(-1))}.`);
    panel.append(canvas, element("p", `Error rate on ${data.online}: ${rate(errors.at(-1))} at step ${steps.at(-1).toLocaleString("en")}, at best ${rate(best.at(-1))}. Light: raw error; bold: its best so far.`));
    panel.dataset.curve = "true";
    drawCurve(canvas, steps, errors, best, p.c);
  } else delete panel.dataset.curve;
  panel.append(how);
  panel.redraw = curve ? open : null;
  live.textContent = `${describe(p)} ${curve ? "Its curve is drawn below." : "Below: how to draw its curve."}`;
}

function drawCurve(canvas, steps, errors, best, c) {
  const width = Math.max(panel.clientWidth - 34, 220), height = 260, pen = surface(canvas, width, height);
  const last = steps.at(-1), y = scaleOf(axisOf(errors), height - 50, 28);
  const at = (step) => 58 + (width - 84) * step / last;
  const x = { axis: { low: 0, high: 0 }, from: 58, to: width - 8, at };
  frame(pen, x, y, ["training step", `error rate, ${data.online}`], [0, last / 2, last]);
  pen.strokeStyle = colour(c);
  for (const [values, weight, alpha, stairs] of [[errors, 1.1, .5, false], [best, 2.4, 1, true]]) {
    pen.lineWidth = weight; pen.globalAlpha = alpha; pen.beginPath();
    values.forEach((value, i) => {
      const px = at(steps[i]), py = y.place(value);
      if (i === 0) return pen.moveTo(px, py);
      if (stairs) pen.lineTo(px, y.place(values[i - 1]));
      pen.lineTo(px, py);
    });
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

names.forEach((name, c) => {
  const item = document.createElement("li"), button = element("button", ""), glyph = element("span", GLYPHS[marker(c)]);
  button.type = "button"; glyph.style.color = `var(--c${c % 12 + 1})`; glyph.setAttribute("aria-hidden", "true");
  button.setAttribute("aria-pressed", "false");
  button.append(glyph, ` ${name}`);
  button.addEventListener("click", () => {
    only = only === c ? -1 : c;
    legend.querySelectorAll("button").forEach((other, i) => other.setAttribute("aria-pressed", String(i === only)));
    draw();
  });
  item.append(button); legend.append(item);
});
new ResizeObserver(() => { draw(); if (!panel.hidden && panel.redraw) panel.redraw(); }).observe(box);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { draw(); if (!panel.hidden && panel.redraw) panel.redraw(); });
draw();
