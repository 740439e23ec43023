// The glitches of a replicate: a cloud and a table to choose from, and what is known of the one that is chosen.
// Reads the JSON block #glitch-data; whatever comes from it is written as text, never as markup.
const data = JSON.parse(document.getElementById("glitch-data").textContent);
const at = (id) => document.getElementById(id);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
const attention = new Uint16Array(bytes(data.attention)), totals = new Float32Array(bytes(data.totals));
const count = data.string.length, heads = data.layers * data.heads, language = data.tokens.includes("w");
const offset = data.answers.length - data.tokens.length;  // of a bit's class to its token: 0 in the language
const failed = data.sister_wrong.map((row) => row.filter(Boolean).length);
const number = (value, digits = 3) => value === null ? "–" : String(Number(value.toPrecision(digits))).replace("-", "−");
const prompt = (g) => Array.from(data.prompts[data.string[g]], (letter) => letter.codePointAt(0) - 48);
let order = data.string.map((_, g) => g), chosen = -1, measure = "weight";

function pen(canvas) {  // sharp on every screen, in the page's pixels
  const { width, height } = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1, made = canvas.getContext("2d");
  canvas.width = width * ratio; canvas.height = height * ratio;
  made.scale(ratio, ratio);
  made.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return [made, width, height];
}

// ---- the table
const columns = [
  ["string", (g) => data.string[g]], ["position", (g) => data.position[g]], ["margin", (g) => data.margin[g]],
  ["since write", (g) => data.since_write[g]],
  ...(language ? [["since event", (g) => data.since_event[g]]] : []),
  ["said", (g) => data.answer[g], (g) => data.answers[data.answer[g]]], ["right", (g) => data.right[g], (g) => data.answers[data.right[g]]],
  ...(data.sisters.length ? [["sisters wrong", (g) => failed[g]]] : []),
];
const body = document.querySelector("#rows tbody"), lines = [];
columns.forEach(([name, value], c) => {
  const cell = element("th"), button = element("button", name);
  cell.scope = "col";
  button.onclick = () => {
    const way = cell.getAttribute("aria-sort") === "descending" ? 1 : -1;  // the largest first
    for (const other of cell.parentNode.children) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", way < 0 ? "descending" : "ascending");
    order.sort((a, b) => way * (value(a) - value(b)) || a - b);
    body.replaceChildren(...order.map((g) => lines[g]));
    at("rows").scrollTop = 0;
  };
  cell.append(button);
  document.querySelector("#rows thead tr").append(cell);
});
for (let g = 0; g < count; g++) {
  const line = element("tr");
  for (const [, value, shown] of columns) line.append(element("td", shown ? shown(g) : Number.isInteger(value(g)) ? value(g) : number(value(g))));
  line.onclick = () => choose(g);
  lines.push(line);
}
body.append(...lines);
at("rows").addEventListener("keydown", (event) => {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!way || event.target !== at("rows")) return;
  event.preventDefault();
  choose(order[Math.max(0, Math.min(count - 1, order.indexOf(chosen) + way))], true);
});

// ---- the cloud: margin by distance to the last write, which has a logarithmic axis
const reach = Math.max(...data.since_write, 1), margins = data.margin.filter((value) => value !== null);
const low = Math.min(0, ...margins), high = Math.max(0, ...margins) || 1;
let place = () => [0, 0];
function cloud() {
  const [draw, width, height] = pen(at("cloud"));
  const left = 44, right = width - 10, bottom = height - 34, top = 22;
  const x = (value) => left + 8 + (right - left - 16) * Math.log1p(value) / Math.log1p(reach);
  const y = (value) => bottom - 6 - (bottom - top - 12) * (value - low) / (high - low || 1);
  // equal distances are spread a little, the same way every time
  place = (g) => [x(data.since_write[g]) + 14 * ((g * 0.618034) % 1 - .5), y(data.margin[g] ?? low)];
  draw.strokeStyle = css("--soft"); draw.fillStyle = css("--soft");
  draw.strokeRect(left + .5, top + .5, right - left, bottom - top);
  draw.textAlign = "center";
  for (let value = language ? 1 : 0; value <= reach; value = Math.max(1, 2 * value)) draw.fillText(String(value), x(value), bottom + 14);
  draw.fillText(`${data.unit} since the last write`, (left + right) / 2, height - 4);
  draw.textAlign = "right";
  for (const value of [low, (low + high) / 2, high]) draw.fillText(number(value, 2), left - 5, y(value) + 4);
  draw.textAlign = "left"; draw.fillText("margin", 2, 12);
  draw.fillStyle = css("--accent"); draw.globalAlpha = count > 200 ? .35 : .7;
  for (let g = 0; g < count; g++) { draw.beginPath(); draw.arc(...place(g), 3.2, 0, 7); draw.fill(); }
  if (chosen < 0) return;
  draw.globalAlpha = 1; draw.lineWidth = 2; draw.strokeStyle = css("--wrong");
  draw.beginPath(); draw.arc(...place(chosen), 6.5, 0, 7); draw.stroke();
}
at("cloud").addEventListener("click", (event) => {
  const area = at("cloud").getBoundingClientRect(), far = (g) => Math.hypot(place(g)[0] - event.clientX + area.left, place(g)[1] - event.clientY + area.top);
  choose(order.reduce((best, g) => far(g) < far(best) ? g : best), true);
});

// ---- the prompt: instructions with their symbols, or single inputs
function showPrompt(g) {
  const tokens = prompt(g), size = language ? 2 : 1, box = at("prompt");
  const asked = data.position[g], write = data.write[g], seen = data.causal ? asked + 1 : tokens.length, words = [];
  for (let i = 0; i < seen; i += size) {
    const word = element("span", tokens.slice(i, Math.min(i + size, seen)).map((token) => data.tokens[token]).join(""));
    const kind = data.tokens[tokens[i]];
    word.className = kind === "w" || kind[0] === "s" ? "w" : kind === "r" ? "" : "i";
    if (write >= i && write < i + size) word.classList.add("last");
    if (asked >= i && asked < i + size) word.classList.add("ask");
    word.title = `position ${i}`;
    words.push(word);
  }
  box.replaceChildren(...words);
}

// ---- what a key is to the glitch, as a colour's name and a word
function role(g, tokens, key) {
  if (key === data.write[g]) return ["--write", "the last write"];
  const writes = language ? key % 2 === 1 && data.tokens[tokens[key - 1]] === "w" : data.tokens[tokens[key]][0] === "s";
  if (!writes) return ["--other", ""];
  return tokens[key] + offset === data.right[g] ? ["--same", ""] : ["--wrong", ""];
}

function strip(canvas, length, bars) {
  const [draw, width, height] = pen(canvas), cell = width / length;
  for (const [key, value, colour] of bars) {
    draw.fillStyle = css(colour);
    const wide = Math.max(cell * .8, 3);
    draw.fillRect(Math.min(width - wide, key * cell + (cell - wide) / 2), height - 1 - value * (height - 2), wide, Math.max(1, value * (height - 2)));
  }
}

function line(name, length, bars, text, layer) {
  const row = element("div", undefined, layer ? "head layer" : "head"), canvas = element("canvas");
  row.append(element("b", name), canvas, element("span", text));
  at("heads").append(row);
  return () => strip(canvas, length, bars);
}

function showHeads(g) {
  if (!data.layers) return;
  const tokens = prompt(g), length = data.causal ? data.position[g] + 1 : tokens.length, write = data.write[g];
  const called = (key) => {
    const before = language && key % 2 === 1 ? data.tokens[tokens[key - 1]] : "";
    return before ? `${data.tokens[tokens[key]]} of ${before}${data.tokens[tokens[key]]} at ${key}` : `${data.tokens[tokens[key]]} at ${key}`;
  };
  at("heads").replaceChildren();
  const draws = [line("ideal", length, [[write, 1, "--write"]], `1 on the last write, ${called(write)}`)];
  for (let h = 0; h < heads; h++) {
    const bars = [], shown = measure === "weight" ? 1 : 2;
    let best = [-1, -1], own = 0;
    for (let k = 0; k < data.kept; k++) {
      const from = ((g * heads + h) * data.kept + k) * 3, key = attention[from], value = attention[from + shown] / 65535;
      if (!value) continue;
      bars.push([key, value, role(g, tokens, key)[0]]);
      if (value > best[1]) best = [key, value];
      if (key === write) own = value;
    }
    const sum = measure === "weight" ? "" : `, Σ ${number(totals[g * heads + h], 2)}`;
    const text = best[0] < 0 ? "nothing" : best[0] === write ? `${best[1].toFixed(2)} on the last write${sum}`
      : `${best[1].toFixed(2)} on ${called(best[0])}; last write ${own.toFixed(2)}${sum}`;
    const layer = Math.floor(h / data.heads), head = h % data.heads;
    draws.push(line(`L${layer + 1} H${head + 1}`, length, bars, text, head === 0));
  }
  for (const draw of draws) draw();  // once all are laid out
  at("kept").textContent = data.kept;
}

function showCurve(g) {
  const canvas = at("curve");
  if (!canvas) return;
  const [draw, width, height] = pen(canvas), left = 52, right = width - 16, top = 10, bottom = height - 34;
  const values = data.margins[g], known = values.filter((value) => value !== null);
  const least = Math.min(0, ...known), most = Math.max(0, ...known), last = data.steps[data.steps.length - 1] || 1;
  const x = (step) => left + (right - left) * step / last, y = (value) => bottom - (bottom - top) * (value - least) / (most - least || 1);
  draw.strokeStyle = css("--soft"); draw.fillStyle = css("--soft");
  draw.beginPath(); draw.moveTo(left, y(0)); draw.lineTo(right, y(0)); draw.stroke();
  draw.textAlign = "right";
  for (const value of new Set([least, 0, most])) draw.fillText(number(value, 2), left - 6, y(value) + 4);
  draw.textAlign = "center";
  for (const part of [0, .25, .5, .75, 1]) draw.fillText(Math.round(part * last).toLocaleString("en"), Math.min(x(part * last), right - 10), bottom + 16);
  draw.fillText("training steps", (left + right) / 2, height - 4);
  draw.strokeStyle = draw.fillStyle = css("--accent"); draw.lineWidth = 2;
  draw.beginPath();
  let drawing = false;
  values.forEach((value, i) => {
    if (value === null) { drawing = false; return; }
    draw[drawing ? "lineTo" : "moveTo"](x(data.steps[i]), y(value)); drawing = true;
  });
  draw.stroke();
  values.forEach((value, i) => { if (value !== null) { draw.beginPath(); draw.arc(x(data.steps[i]), y(value), 3, 0, 7); draw.fill(); } });
}

function showSisters(g) {
  if (!data.sisters.length) return;
  at("told").textContent = `${failed[g]} of ${data.sisters.length} sister seeds ${failed[g] === 1 ? "fails" : "fail"} here too.`;
  at("sisters").replaceChildren(...data.sisters.map((seeds, s) => {
    const wrong = data.sister_wrong[g][s];
    return element("span", `${seeds}: ${number(data.sister_margins[g][s])}${wrong ? " wrong" : ""}`, wrong ? "failed" : "");
  }));
}

function choose(g, scroll) {
  if (chosen >= 0) lines[chosen].removeAttribute("aria-selected");
  chosen = g;
  lines[g].setAttribute("aria-selected", "true");
  if (scroll) lines[g].scrollIntoView({ block: "nearest" });
  at("one-title").textContent = `String ${data.string[g]}, position ${data.position[g]}: said ${data.answers[data.answer[g]]}, right is ${data.answers[data.right[g]]}, margin ${number(data.margin[g])}`;
  showPrompt(g); showHeads(g); showCurve(g); showSisters(g); cloud();
}

for (const input of document.querySelectorAll("input[name=measure]")) input.onchange = () => { measure = input.value; showHeads(chosen); };
let waiting = 0;
const again = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(() => choose(chosen)); };
window.addEventListener("resize", again);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
choose(0);
document.documentElement.dataset.ready = "true";
