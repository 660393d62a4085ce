// Keys of the terminal: j k move, a A y d c e r s g t u answer and change, ? says why, / searches.
import { isReady, say } from "./guard.js";

let armed = false;

const find = (key) => document.querySelector(`main [data-key="${key}"]`);

function move(step) {
  const links = [...document.querySelectorAll("main a.open")];
  const at = links.indexOf(document.activeElement);
  const next = links[Math.min(links.length - 1, Math.max(0, at + step))];
  if (next) next.focus();
}

function press(key) {
  const button = find(key);
  if (!button) return;
  if (!isReady()) {
    say("This key came too soon after another: wait a moment, then press it again.");
    return;
  }
  button.click();
}

function arm() {
  if (!find("A") || !isReady()) return;
  armed = true;
  say("Press y to allow it; any other key cancels.");
}

function confirm() {
  const sure = document.getElementById("sure");
  if (sure) sure.checked = true;
  find("A")?.click();
}

function allowForSession() {
  const select = document.getElementById("remember");
  const option = select?.querySelector('[data-scope="session"]');
  if (!option) {
    say("This answer cannot be remembered for a session.");
    return;
  }
  select.value = option.value;
  if (find("A")) arm();
  else press("a");
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  a: () => (find("A") ? say("High risk: A (with shift), then y, allows it once.") : press("a")),
  A: arm,
  d: () => press("d"),
  c: () => press("c"),
  e: () => {
    const part = find("e")?.parentElement;
    if (!part) return;
    part.open = true;
    part.querySelector("textarea").focus();
  },
  r: () => find("r")?.focus(),
  s: allowForSession,
  g: () => press("g"),
  t: () => press("t"),
  u: () => document.querySelector("main form.answer")?.reset(),
  "?": () => {
    const why = document.getElementById("why");
    if (!why) return;
    why.open = !why.open;
    if (why.open) why.scrollIntoView();
  },
  "/": () => document.querySelector("main input[type=search]")?.focus(),
};

export function begin() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const confirmed = armed && event.key === "y";
    armed = false;
    if (confirmed) {
      event.preventDefault();
      confirm();
      return;
    }
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  // The first of two keys was pressed for what stood there then.
  document.addEventListener("console:replaced", () => {
    if (armed) say("The question has changed: read it, then press A again.");
    armed = false;
  });
}
