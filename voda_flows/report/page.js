// Tooltips that follow the pointer, jobs that light up from the legend, and a switch between light and dark.
const tip = document.getElementById("tip");
document.querySelectorAll("[data-tip]").forEach((part) => {
  part.querySelector("title")?.remove();
  part.addEventListener("pointermove", (event) => {
    tip.textContent = part.dataset.tip;
    tip.style.display = "block";
    const right = event.clientX + 16 + tip.offsetWidth > window.innerWidth;
    tip.style.left = `${event.clientX + (right ? -16 - tip.offsetWidth : 16)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
  });
  part.addEventListener("pointerleave", () => (tip.style.display = "none"));
});
document.querySelectorAll("[data-job]").forEach((item) => {
  const parts = document.querySelectorAll(`.of${item.dataset.job}`);
  item.addEventListener("pointerenter", () => {
    document.body.classList.add("dim");
    parts.forEach((part) => part.classList.add("lit"));
  });
  item.addEventListener("pointerleave", () => {
    document.body.classList.remove("dim");
    parts.forEach((part) => part.classList.remove("lit"));
  });
});
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
