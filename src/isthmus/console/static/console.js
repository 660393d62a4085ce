// The console's scripts. Every page works without them, as plain forms.
import { begin as beginGuard } from "./guard.js";
import { begin as beginKeys } from "./keys.js";
import { begin as beginLive } from "./live.js";
import { begin as beginLogin } from "./login.js";
import { begin as beginNotices } from "./notify.js";

document.documentElement.dataset.scripts = "yes";
if (!beginLogin()) {
  beginGuard();
  beginKeys();
  beginNotices();
  beginLive();
}
