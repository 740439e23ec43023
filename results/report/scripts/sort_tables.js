// Tables with data-sortable are sorted by the buttons in their headings.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, i) => { const cell = row.cells[i]; return "v" in cell.dataset ? cell.dataset.v : cell.textContent.trim(); };
  heads.forEach((head, i) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending", rows = [...body.rows];
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => {
      const x = value(a, i), y = value(b, i);
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x === y ? 0 : Number(x) - Number(y);
      return down ? -order : order;
    });
    body.append(...rows);
  }));
}
document.documentElement.dataset.ready = "true";
