// Buttons with data-copy copy the text of the element they name.
const status = document.getElementById("copied");
const select = (node) => {
  const range = document.createRange(), selection = getSelection();
  range.selectNodeContents(node); selection.removeAllRanges(); selection.addRange(range);
};
for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", async () => {
  const node = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(node.textContent);
    status.textContent = "Copied.";
  } catch {
    select(node);  // a page opened from disk may not have the clipboard
    status.textContent = document.execCommand("copy") ? "Copied." : "Selected: copy it with the keyboard.";
  }
});
