// What the scripts of pages share. It is no module, so that those, which are, find its names.
const SHAPES = {  // matplotlib's markers: those of results/report/plots/palette.py in their order, then others
  o: (pen, x, y, r) => pen.arc(x, y, r, 0, 7),
  s: (pen, x, y, r) => pen.rect(x - r * .9, y - r * .9, r * 1.8, r * 1.8),
  "^": (pen, x, y, r) => { pen.moveTo(x, y - r * 1.1); pen.lineTo(x + r, y + r * .8); pen.lineTo(x - r, y + r * .8); pen.closePath(); },
  D: (pen, x, y, r) => { pen.moveTo(x, y - r * 1.2); pen.lineTo(x + r * 1.2, y); pen.lineTo(x, y + r * 1.2); pen.lineTo(x - r * 1.2, y); pen.closePath(); },
  v: (pen, x, y, r) => { pen.moveTo(x, y + r * 1.1); pen.lineTo(x + r, y - r * .8); pen.lineTo(x - r, y - r * .8); pen.closePath(); },
  P: (pen, x, y, r) => { pen.rect(x - r * 1.1, y - r * .4, r * 2.2, r * .8); pen.rect(x - r * .4, y - r * 1.1, r * .8, r * 2.2); },
  x: (pen, x, y, r) => { pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r); pen.moveTo(x - r, y + r); pen.lineTo(x + r, y - r); },
};
const GLYPHS = { o: "●", s: "■", "^": "▲", D: "◆", v: "▼", P: "✚" };

function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

function element(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  if (name) made.className = name;
  return made;
}

function superscript(exponent) {
  return [...String(exponent)].map((digit) => digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
}

function short(value, digits = 3) {
  if (Math.abs(value) >= 1e3) return Number(value.toPrecision(Math.max(digits, Math.floor(Math.log10(Math.abs(value))) + 1))).toLocaleString("en");
  if (value === 0 || Math.abs(value) >= 0.001) {
    const text = Number(value.toPrecision(digits));
    if (Math.abs(text) === 1 && Math.abs(value - text) > 1e-9) return short(value, digits + 1); // 0.9996 is not 1
    return String(text);
  }
  const [mantissa, exponent] = value.toExponential(Math.max(digits - 2, 1)).split("e");
  return `${mantissa}×10${superscript(Number(exponent))}`;
}
