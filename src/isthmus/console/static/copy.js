// Buttons that copy a command. Without scripts they are not seen, and the command is selected as a whole by a click.
document.documentElement.dataset.copy = "on";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  const source = button && document.getElementById(button.dataset.copy);
  if (!source) return;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source); // no clipboard here: the person copies it
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
});
