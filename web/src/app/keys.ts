// Keys: one letter each, outside fields. Everything that a key does, a button and the palette do as well.
import { useEffect } from "preact/hooks";
import { actionsOn } from "./chosen";
import { openDialog } from "./dialogs";
import { palette } from "./palette_state";
import { go, place } from "./router";
import { VIEWS } from "./views";

type Deed = () => unknown;

/** What can be done in a view: by a button, by its words in the palette, and for some by a letter. */
export interface Action {
  words: string;
  key?: string;
  act: Deed;
}

let ofView: Action[] = [];

/** What the view at hand can do now. */
export function useActions(actions: (Action | "" | false | null | undefined)[]): void {
  useEffect(() => {
    const offered = actions.filter((it) => !!it);
    ofView = offered;
    return () => {
      if (ofView === offered) ofView = [];
    };
  });
}

export function actionsHere(): Action[] {
  return ofView;
}

/** Puts the cursor into a field as soon as it is there: its view may have to be drawn first. */
export function focusSoon(find: () => HTMLElement | null | undefined, frames = 60): void {
  const it = find();
  if (it) {
    it.focus();
    it.scrollIntoView({ block: "nearest" });
  } else if (frames > 0) requestAnimationFrame(() => focusSoon(find, frames - 1));
}

/** The views, by the letter that follows G. */
const PLACES = new Map(VIEWS.map((view) => [view.key, view.path]));
/** How long a G waits for its letter. */
const GO_MS = 1500;
/** When the G was pressed, not when a busy page got to it. */
let goSince = Number.NEGATIVE_INFINITY;

function inField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

/** The rows, questions and nodes that J and K go through. */
function stops(): HTMLElement[] {
  return [
    ...document.querySelectorAll<HTMLElement>(
      "main :is(a.row, .ask, a.node, .msg, .git li:not(.is-point), [role=row][tabindex])",
    ),
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

/** Where a question is answered: its field, else its first button. */
function answerOf(ask: HTMLElement | undefined): HTMLElement | null {
  return ask?.querySelector<HTMLElement>("textarea") ?? ask?.querySelector<HTMLElement>("button, a.btn") ?? null;
}

/** Opens what J and K have chosen, if it is no link itself. */
function openChosen(): boolean {
  const chosen = document.activeElement;
  if (!(chosen instanceof HTMLElement)) return false;
  if (chosen.matches(".ask")) answerOf(chosen)?.focus();
  else if (chosen.matches(".git li")) chosen.querySelector<HTMLElement>("a[href]")?.click();
  else return false;
  return true;
}

/** From one agent or quest to all of them. */
function goUp(): boolean {
  const { parts } = place();
  if (parts.length < 2) return false;
  go(`/${parts[0]}`);
  return true;
}

function answer(which: "oldest" | "next"): void {
  if (location.pathname !== "/") go("/");
  const asks = () => [...document.querySelectorAll<HTMLElement>(".ask[data-need]")];
  const at = which === "oldest" ? 0 : asks().findIndex((it) => it.contains(document.activeElement)) + 1;
  focusSoon(() => {
    const all = asks();
    return answerOf(all[at % Math.max(1, all.length)]);
  });
}

export const ANYWHERE: (Action & { key: string })[] = [
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
    const place = event.timeStamp - goSince < GO_MS ? PLACES.get(key) : undefined;
    if (place !== undefined) {
      goSince = Number.NEGATIVE_INFINITY;
      event.preventDefault();
      go(place);
      return;
    }
    goSince = Number.NEGATIVE_INFINITY;
    const named = event.shiftKey && key !== "?" && key !== "#" ? `⇧${key}` : key;
    const action = [...ofView, ...actionsOn(document.activeElement), ...ANYWHERE].find((it) => it.key === named);
    if (key === "G" && !event.shiftKey) goSince = event.timeStamp;
    else if (key === "J") step(1);
    else if (key === "K") step(-1);
    else if (action) action.act();
    else if (key === "Escape") {
      // A dialog that was just closed by it is not in the document any more.
      if ((event.target as Element).closest?.("dialog") || !goUp()) return;
    } else if (key !== "Enter" || !openChosen()) return;
    event.preventDefault();
  });
}
