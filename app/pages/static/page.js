// What the pages need beyond htmx: keys, dialogs, copying, and staying at the newest line.
"use strict";

const byId = (id) => document.getElementById(id);

function grow(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, 260)}px`;
}

function send(text) {
  const question = byId("question");
  question.value = text;
  byId("ask").requestSubmit();
}

// Whether the person reads the newest lines; else the page does not move.
function atEnd() {
  const turns = byId("turns");
  return turns.scrollHeight - turns.scrollTop - turns.clientHeight < 80;
}

let follows = true;
let fading = 0;
let sent = "";

function toEnd() {
  const turns = byId("turns");
  turns.scrollTop = turns.scrollHeight;
}

document.addEventListener("DOMContentLoaded", () => {
  const turns = byId("turns");
  if (!turns) return;
  turns.addEventListener("scroll", () => { follows = atEnd(); }, { passive: true });
  new MutationObserver(() => { if (follows) toEnd(); }).observe(turns, { childList: true, subtree: true, characterData: true });
  turns.addEventListener("load", () => { if (follows) toEnd(); }, true);
  toEnd();
  const toast = byId("toast");
  new MutationObserver(() => {
    clearTimeout(fading);
    fading = setTimeout(() => { toast.replaceChildren(); }, 8000);
  }).observe(toast, { childList: true });
  const question = byId("question");
  grow(question);
  if (matchMedia("(min-width: 50rem)").matches) question.focus();
});

document.addEventListener("input", (event) => {
  if (event.target.id === "question") grow(event.target);
});

document.addEventListener("keydown", (event) => {
  if (event.target.id === "question" && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (event.target.value.trim()) byId("ask").requestSubmit();
  }
  if (event.key === "Escape") {
    for (const name of ["left", "panel"]) setOpen(name, false, true);
    for (const menu of document.querySelectorAll(".menu[open]")) menu.open = false;
  }
});

// Sides are always open on a wide page; on a narrow one a button opens them, one at a time.
function setOpen(name, open, byKey) {
  const side = byId(name);
  const button = document.querySelector(`[data-toggle="${name}"]`);
  if (!side || !button) return;
  const was = side.classList.contains("open");
  side.classList.toggle("open", open);
  button.setAttribute("aria-expanded", String(open));
  if (open) side.focus();
  else if (was && byKey) button.focus();
}

document.addEventListener("click", async (event) => {
  const target = event.target.closest("[data-example], [data-copy], [data-close], [data-toggle]");
  for (const menu of document.querySelectorAll(".menu[open]")) {
    if (!menu.querySelector("summary").contains(event.target)) menu.open = false;
  }
  for (const name of ["left", "panel"]) {
    if (!event.target.closest(`#${name}, [data-toggle="${name}"], dialog`)) setOpen(name, false);
  }
  if (!target) return;
  if ("example" in target.dataset) send(target.dataset.example);
  if ("copy" in target.dataset) await navigator.clipboard.writeText(target.dataset.copy);
  if ("close" in target.dataset) target.closest("dialog").close();
  if ("toggle" in target.dataset) {
    const name = target.dataset.toggle;
    setOpen(name, !byId(name).classList.contains("open"));
  }
});

document.addEventListener("htmx:before:request", (event) => {
  if (document.hidden && event.detail.ctx.sourceElement.id === "newer") event.preventDefault();
  if (event.detail.ctx.sourceElement.id !== "ask") return;
  follows = true;
  sent = byId("question").value;
});

document.addEventListener("htmx:after:swap", (event) => {
  if (event.detail.ctx.target?.id === "turns") {
    // A look for newer turns that left before the answer to a question brings the question, too.
    for (const turn of document.querySelectorAll("#turns > .turn")) {
      if (byId(turn.id) !== turn) turn.remove();
    }
  }
  document.title = `${byId("title").textContent} · longtable`;
  const dialog = byId("dialog");
  if (event.detail.ctx.target === dialog && dialog.childElementCount && !dialog.open) dialog.showModal();
});

// The text is cleared only once the server has taken it, and unless it was changed since, so that
// nothing is lost.
document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  const status = ctx.response?.status ?? 0;
  if (status < 200 || status >= 400) return;
  if (ctx.sourceElement.id === "ask") {
    const question = byId("question");
    if (question.value === sent) question.value = "";
    grow(question);
    htmx.trigger(document.body, "begun");
  }
  const dialog = ctx.sourceElement.closest("dialog");
  if (dialog && ctx.request.method === "POST") dialog.close();
});
