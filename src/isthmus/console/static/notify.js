// Notifications of the browser, where somebody has asked for them.
export function tellOf(count, high) {
  if (!("Notification" in window) || Notification.permission !== "granted" || !document.hidden) return;
  const risk = high ? `, ${high} of high risk` : "";
  const told = new Notification("isthmus", { body: `${count} waiting${risk}`, tag: "isthmus" });
  told.onclick = () => window.focus();
}

function offer() {
  const place = document.getElementById("notify-place");
  if (!place || !("Notification" in window) || Notification.permission !== "default") return;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Notify me";
  button.addEventListener("click", async () => {
    await Notification.requestPermission();
    button.remove();
  });
  place.replaceChildren(button);
}

export function begin() {
  offer();
  document.addEventListener("console:replaced", offer);
}
