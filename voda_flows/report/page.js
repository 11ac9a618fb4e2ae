// Tooltips that follow the pointer or the arrow keys, jobs that light up from legend and search, light and dark.
const tip = document.getElementById("tip");
const body = document.body;
const show = (said, x, y) => {
  tip.textContent = said;
  tip.style.display = "block";
  const right = x + 16 + tip.offsetWidth > window.innerWidth;
  tip.style.left = `${Math.max(4, x + (right ? -16 - tip.offsetWidth : 16))}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - tip.offsetHeight - 8))}px`;
};
const hide = () => (tip.style.display = "none");
document.querySelectorAll("svg").forEach((picture) => {
  const parts = [...picture.querySelectorAll("g")].filter((part) => part.firstElementChild?.tagName === "title");
  const said = new Map(parts.map((part) => [part, part.firstElementChild.textContent]));
  parts.forEach((part) => part.firstElementChild.remove());
  const over = (target) => target.closest && said.get(target.closest("g"));
  picture.addEventListener("pointermove", (event) => {
    const words = over(event.target);
    words ? show(words, event.clientX, event.clientY) : hide();
  });
  picture.addEventListener("pointerleave", hide);
  let at = -1;
  const leave = () => parts[at]?.classList.remove("at");
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") return hide();
    if (!step || !parts.length) return;
    event.preventDefault();
    leave();
    at = (at + step + parts.length) % parts.length;
    parts[at].classList.add("at");
    parts[at].scrollIntoView({ block: "nearest" });
    const box = parts[at].getBoundingClientRect();
    show(said.get(parts[at]), box.left + Math.min(box.width, 40) / 2, box.bottom - 8);
  });
  picture.addEventListener("blur", () => (leave(), hide()));
});
const light = (jobs) => {
  document.querySelectorAll(".lit").forEach((part) => part.classList.remove("lit"));
  body.classList.toggle("dim", jobs !== null);
  (jobs || []).forEach((job) => document.querySelectorAll(`.of${job}`).forEach((part) => part.classList.add("lit")));
};
document.querySelectorAll("li[data-job]").forEach((item) => {
  item.addEventListener("pointerenter", () => light([item.dataset.job]));
  item.addEventListener("pointerleave", () => light(null));
});
const names = [...document.querySelectorAll("#names option")].map((option) => [option.dataset.job, option.value]);
document.getElementById("find").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  const found = wanted ? names.filter(([, name]) => name.toLowerCase().includes(wanted)).map(([job]) => job) : null;
  light(found);
  const kept = found && new Set(found);
  document.querySelectorAll("tr[data-of]").forEach((row) => (row.hidden = kept !== null && !kept.has(row.dataset.of)));
  const lane = found && document.getElementById(`lane${found[0]}`);
  const scrolls = lane && lane.closest(".scrolls");
  if (scrolls) scrolls.scrollTop += lane.getBoundingClientRect().top - scrolls.getBoundingClientRect().top - 20;
});
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
