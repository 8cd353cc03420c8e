// Sets the chosen colours before anything is drawn. This is a plain script, because modules run too late for that.
(() => {
  let theme = "auto";
  try {
    theme = localStorage.getItem("headend.theme") || "auto";
  } catch {
    // Storage may be forbidden: the system's choice then holds.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();

// A script or style sheet that did not arrive, for example because the network changed while the page was loading, leaves
// a page that never starts. It is loaded again, a few times.
const RELOAD_MS = 2000, RELOADS_MAX = 5;
addEventListener("error", event => {
  if (!["SCRIPT", "LINK"].includes(event.target?.tagName)) return;
  let reloads = RELOADS_MAX;
  try {
    reloads = Number(sessionStorage.getItem("headend.reloads"));
    sessionStorage.setItem("headend.reloads", reloads + 1);
  } catch {
    // Without storage nothing counts the attempts.
  }
  if (reloads < RELOADS_MAX) setTimeout(() => location.reload(), RELOAD_MS);
}, true);
