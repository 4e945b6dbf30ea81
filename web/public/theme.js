// Before the first paint, so that nobody is dazzled. A file of its own, because the page allows no inline script.
(() => {
  try {
    const theme = new URLSearchParams(location.search).get("theme") ?? localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage the system's theme holds.
  }
})();
