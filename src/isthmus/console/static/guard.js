// Answers count only where the card has stood still for a while, and no key was just pressed before.
const QUIET_MS = 400;
let moved = performance.now();
let pressed = -Infinity;
let alone = true;

export function noteChange() {
  moved = performance.now();
}

export function isReady() {
  const now = performance.now();
  // A key that is pressed now has to stand alone; a pointer that comes later is no part of a text.
  return now - moved >= QUIET_MS && (alone || now - pressed >= QUIET_MS);
}

export function say(text) {
  let place = document.getElementById("said");
  if (!place) {
    place = document.createElement("p");
    place.id = "said";
    place.setAttribute("role", "status");
    document.body.append(place);
  }
  place.textContent = text;
}

export function begin() {
  document.addEventListener(
    "keydown",
    (event) => {
      const now = performance.now();
      if (!event.repeat) alone = now - pressed >= QUIET_MS;
      pressed = now;
    },
    true,
  );
  // The place of a card changes with the size of the window and with parts that are opened.
  addEventListener("resize", noteChange);
  document.addEventListener("toggle", noteChange, true);
  document.addEventListener("visibilitychange", noteChange);
  document.addEventListener(
    "submit",
    (event) => {
      if (!event.target.dataset.guard) return;
      if (isReady()) return;
      event.preventDefault();
      event.stopPropagation();
      say("This has just appeared: read it, then answer again.");
    },
    true,
  );
}
