// Keys: one letter each, outside fields. Everything that a key does, a button and the palette do as well.
import { openDialog } from "./dialogs";
import { palette } from "./palette_state";
import { go } from "./router";

type Deed = () => unknown;

/** What the view at hand does with a letter. */
let ofView: Record<string, Deed> = {};

export function setActions(actions: Record<string, Deed>): () => void {
  ofView = actions;
  return () => {
    if (ofView === actions) ofView = {};
  };
}

export function actions(): Record<string, Deed> {
  return ofView;
}

const PLACES: Record<string, string> = {
  H: "/",
  Q: "/quests",
  A: "/agents",
  S: "/seats",
  B: "/build",
  M: "/mail",
  L: "/log",
  C: "/cost",
};
/** How long a G waits for its letter. */
const GO_MS = 1500;
let goSince = 0;

function inField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

/** The rows, questions and nodes that J and K go through. */
function stops(): HTMLElement[] {
  return [
    ...document.querySelectorAll<HTMLElement>("main :is(a.row, .ask, a.node, .msg, .git li, [role=row][tabindex])"),
  ].filter((it) => it.offsetParent !== null);
}

function step(by: number): void {
  const all = stops();
  const at = all.findIndex((it) => it === document.activeElement || it.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
  if (!next) return;
  if (next.tabIndex < 0) next.tabIndex = -1;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function answer(which: "oldest" | "next"): void {
  const open = () => {
    const asks = [...document.querySelectorAll<HTMLElement>(".ask[data-need]")];
    const at = asks.findIndex((it) => it.contains(document.activeElement));
    const ask = which === "oldest" ? asks[0] : asks[(at + 1) % Math.max(1, asks.length)];
    if (!ask) return;
    const field = ask.querySelector<HTMLElement>("textarea") ?? ask.querySelector<HTMLElement>("button");
    field?.focus();
    ask.scrollIntoView({ block: "nearest" });
  };
  if (location.pathname !== "/") {
    go("/");
    setTimeout(open, 60);
  } else open();
}

export const ANYWHERE: { key: string; words: string; act: Deed }[] = [
  { key: "A", words: "Answer the oldest question", act: () => answer("oldest") },
  { key: "E", words: "Next that needs you", act: () => answer("next") },
  { key: "N", words: "New quest", act: () => openDialog("quest") },
  { key: "?", words: "All keys", act: () => go("/keys") },
];

export function listenKeys(): void {
  addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette.set(palette.get() ? null : { text: "" });
      return;
    }
    if (event.key === "Escape" && inField(event.target)) {
      (event.target as HTMLElement).blur();
      return;
    }
    if (
      event.metaKey ||
      event.ctrlKey ||
      event.altKey ||
      inField(event.target) ||
      document.querySelector("dialog[open]")
    )
      return;
    const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
    if (Date.now() - goSince < GO_MS && PLACES[key]) {
      goSince = 0;
      event.preventDefault();
      go(PLACES[key]);
      return;
    }
    goSince = 0;
    const named = event.shiftKey && key !== "?" && key !== "#" ? `⇧${key}` : key;
    const deed = ofView[named] ?? ANYWHERE.find((it) => it.key === named)?.act;
    if (key === "G" && !event.shiftKey) goSince = Date.now();
    else if (key === "J") step(1);
    else if (key === "K") step(-1);
    else if (deed) deed();
    else return;
    event.preventDefault();
  });
}
