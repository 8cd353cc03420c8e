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
