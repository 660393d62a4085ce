// Live updates: the server tells which topics have changed, and the page is fetched again.
import { noteChange, say } from "./guard.js";
import { tellOf } from "./notify.js";

const prefix = () => document.body.dataset.prefix;
const topics = () => (document.body.dataset.live ?? "").split(" ").filter(Boolean);
// What waits is shown at once; a page of calls under load is fetched once in a while.
const pause = () => (topics().includes("inbox") ? 0 : 1000);
const UNREACHED_TEXT =
  "This page has changed, and your draft cannot be kept: copy it, then open the page again.";
const RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;
let loading = false;
let again = false;
let delay = RETRY_MS;

// XMLHttpRequest parses a page without running anything of it, and without a string of HTML.
function fetchPage(url, fields) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(fields ? "POST" : "GET", url);
    request.responseType = "document";
    request.onload = () => (request.status < 500 ? resolve(request.response) : reject());
    request.onerror = reject;
    request.send(fields);
  });
}

function isChanged(main) {
  if (main.querySelector("[data-draft]")) return true;
  return [...main.querySelectorAll("input, textarea, select")].some((one) => {
    if (one.type === "hidden") return false;
    if (one.type === "checkbox") return one.checked !== one.defaultChecked;
    if (one.tagName === "SELECT") {
      const given = [...one.options].find((option) => option.defaultSelected) ?? one.options[0];
      return given !== undefined && one.value !== given.value;
    }
    return one.value !== one.defaultValue;
  });
}

const version = (main) => main.querySelector("input[name=version]")?.value ?? "";

function describe(main) {
  const copy = main.cloneNode(true);
  for (const one of copy.querySelectorAll("input[name=form], .left, #notify-place")) one.remove();
  for (const one of copy.querySelectorAll("details")) one.removeAttribute("open");
  return copy.innerHTML;
}

// What a reader has opened and closed stays so in the next version of a page.
const nameFold = (one) => one.id || one.querySelector("summary")?.textContent || "";

function keepFolds(before, after) {
  const states = new Map([...before.querySelectorAll("details")].map((one) => [nameFold(one), one.open]));
  for (const one of after.querySelectorAll("details")) one.open = states.get(nameFold(one)) ?? one.open;
}

// What a control is called in each version of a page, so that the focus stays where it was.
function nameControl(one) {
  const said = ["id", "href", "name", "aria-label"].map((key) => one.getAttribute(key) ?? "");
  const words = one.matches("a, button, summary") ? one.textContent : "";
  return [one.tagName, ...said, one.form?.getAttribute("action") ?? "", words].join("\n");
}

function replace(before, after) {
  const card = before.querySelector("[data-card]");
  if (card && version(before) && version(before) === version(after)) return;
  if (describe(before) === describe(after)) return;
  if (isChanged(before) && !card) return;
  const active = before.contains(document.activeElement) ? nameControl(document.activeElement) : "";
  keepFolds(before, after);
  before.replaceWith(document.adoptNode(after));
  if (active) {
    const controls = [...after.querySelectorAll("a, button, input, select, textarea, summary")];
    controls.find((one) => nameControl(one) === active)?.focus({ preventScroll: true });
  }
  noteChange();
  document.dispatchEvent(new CustomEvent("console:replaced"));
}

// A card that changes under a draft: the server lays the draft beside the new card, and decides nothing.
async function keepDraft(main, after) {
  const form = main.querySelector("form.answer");
  if (!form || !isChanged(main) || version(main) === version(after)) return after;
  const read = () => new Map(new FormData(form));
  const sent = new URLSearchParams([...read(), ["verdict", "keep"]]);
  const kept = (await fetchPage(form.action, sent))?.getElementById("main");
  if (!kept || (version(after) && !version(kept))) return null;
  for (const [name, value] of read()) {
    // what was typed while the server answered
    const place = kept.querySelector(`[name="${name}"]:is(textarea, input:not([type=hidden], [type=checkbox]))`);
    if (place && sent.get(name) !== value) place.value = value;
  }
  return kept;
}

// The page as it is now; of a card also how it differs from the one that is shown.
function readAddress(main) {
  const address = new URL(location.href);
  address.hash = "";
  if (version(main) && main.querySelector("[data-card]")) {
    address.searchParams.set("since", version(main));
  }
  return address;
}

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  try {
    do {
      again = false;
      const main = document.getElementById("main");
      const page = await fetchPage(readAddress(main));
      const found = page?.getElementById("main");
      if (!found || page.getElementById("login")) {
        if (main.querySelector("[data-card]") && isChanged(main)) say(UNREACHED_TEXT);
        else location.reload();
        return;
      }
      const after = await keepDraft(main, found);
      if (after) replace(main, after);
      else say(UNREACHED_TEXT);
      await new Promise((resolve) => setTimeout(resolve, pause()));
    } while (again);
  } catch {
    say("The console cannot be reached.");
    setTimeout(refresh, waitLonger());
  } finally {
    loading = false;
  }
}

function showCount(data) {
  const [count, high] = data.split(" ").map(Number);
  const place = document.getElementById("count");
  if (!place) return;
  const before = Number(place.dataset.count);
  if (count === before) return;
  place.dataset.count = String(count);
  place.firstElementChild.textContent = count ? String(count) : "";
  place.lastElementChild.textContent = count ? ` ${count} waiting` : "";
  document.title = document.title.replace(/^\(\d+\) /, "");
  if (count) document.title = `(${count}) ${document.title}`;
  document.getElementById("icon").href = `${prefix()}/icon.svg?n=${count}`;
  if (count > before) tellOf(count, high);
}

function showTimes() {
  for (const one of document.querySelectorAll(".left[data-deadline]")) {
    const deadline = Number(one.dataset.deadline);
    if (!deadline) continue;
    const left = Math.max(0, Math.round(deadline - Date.now() / 1000));
    const text = left ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` : "over";
    if (one.textContent !== text) one.textContent = text;
  }
}

// Each attempt that fails makes the next one wait twice as long.
function waitLonger() {
  const now = delay;
  delay = Math.min(2 * delay, MAX_RETRY_MS);
  return now;
}

function listen() {
  const source = new EventSource(`${prefix()}/events`);
  source.addEventListener("hello", () => {
    delay = RETRY_MS;
    // Before the stream was open, and after a break, anything may have changed.
    if (topics().length) refresh();
  });
  source.addEventListener("change", (event) => {
    const told = event.data.split(" ");
    if (topics().some((one) => told.includes(one))) refresh();
  });
  source.addEventListener("reload", refresh);
  source.addEventListener("count", (event) => showCount(event.data));
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
  source.addEventListener("error", () => {
    // HTML, 9.2.2: a stream that broke is opened again by the browser; one that was answered with an error is not.
    if (source.readyState === EventSource.CLOSED) setTimeout(openAgain, waitLonger());
  });
}

// The page is fetched, too: it says whether the login has ended.
function openAgain() {
  refresh();
  listen();
}

export function begin() {
  setInterval(showTimes, 1000);
  listen();
}
