// What the theme leaves out for people who use a keyboard or a screen reader: different names for the search dialog, lists and
// blocks of code, and a place in the tab order for what scrolls. The theme makes some of these elements later than the page.
function label() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Block of code ${i + 1}`));
  const names = new Set();
  for (const nav of document.querySelectorAll("nav[aria-label]")) {
    if (names.has(nav.ariaLabel)) nav.ariaLabel = `${nav.ariaLabel}, ${names.size}`;
    names.add(nav.ariaLabel);
  }
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}
addEventListener("load", label);
addEventListener("resize", label);
new MutationObserver(label).observe(document.body, { childList: true, subtree: true });
