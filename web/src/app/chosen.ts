// What can be done with the row that J, K or Tab have chosen, and with the buttons in sight: by the same letters and words everywhere.
import { api, type Problem } from "../api/client";
import { store } from "../store/store";
import { nameOf, questName } from "../ui/names";
import { forkDialog, notify } from "./dialogs";
import type { Action } from "./keys";
import { focusSoon } from "./keys";
import { go, to } from "./router";

const deed = (it: Promise<unknown>) => void it.catch((problem: Problem) => notify(problem));

/** What can be done with the agent or quest that an element is about. */
export function actionsOn(element: Element | null): Action[] {
  const about = (what: string) => element?.closest<HTMLElement>(`main [data-${what}]`)?.dataset[what];
  const [agent, quest] = [about("agent"), about("quest")];
  if (agent) return ofAgent(agent);
  return quest ? ofQuest(quest, about("step")) : [];
}

export function ofAgent(id: string): Action[] {
  const entry = store.agent(id);
  if (!entry) return [];
  const name = nameOf(id);
  const { activity, view } = entry;
  const lives = view.state !== "dead" && view.state !== "expired";
  const actions: Action[] = [];
  if (lives)
    actions.push({
      key: "S",
      words: `Say something to ${name}`,
      act: () => {
        go(to.agent(id));
        focusSoon(() => document.getElementById("say"));
      },
    });
  actions.push(
    { key: "F", words: `Fork ${name} at its last message`, act: () => forkDialog(id, name, null) },
    { key: "D", words: `See the changes of ${name}`, act: () => go(`${to.agent(id)}?show=changes`) },
    { key: "W", words: `How we know what ${name} does`, act: () => go(`${to.agent(id)}?show=why`) },
    { key: "L", words: `See the events of ${name} in the log`, act: () => go(`/log?agent=${id}`) },
  );
  if (activity === "working" || activity === "silent")
    actions.push({ key: "⇧I", words: `Interrupt the turn of ${name}`, act: () => deed(api.interrupt(id)) });
  if (["starting", "working", "listening", "silent", "parked"].includes(activity))
    actions.push({ key: "X", words: `Stop ${name}`, act: () => deed(api.stop(id)) });
  return actions;
}

function ofQuest(id: string, step: string | undefined): Action[] {
  const name = questName(id);
  const state = store.state?.quests.get(id)?.state;
  const actions: Action[] = [];
  if (state === "open") actions.push({ key: "P", words: `Pause “${name}”`, act: () => deed(api.pause(id)) });
  if (state === "paused") actions.push({ key: "P", words: `Resume “${name}”`, act: () => deed(api.resume(id)) });
  if (step && store.quest(id)?.steps.some((it) => it.id === step && it.status === "failed"))
    actions.push({ key: "R", words: `Retry step ${step}`, act: () => deed(api.retry(id, step)) });
  const where = step ? `/log?quest=${id}&step=${encodeURIComponent(step)}` : `/log?quest=${id}`;
  actions.push({ key: "L", words: `See the events of ${step ?? `“${name}”`} in the log`, act: () => go(where) });
  return actions;
}

/** A button in sight, with what it is about. */
interface Button {
  words: string;
  about: string;
  act: () => void;
}

/** The words of a button, without the key beside them. */
function wordsOf(button: HTMLElement): string {
  const label = button.getAttribute("aria-label");
  if (label) return label;
  const parts = [...button.childNodes].filter((it) => !(it instanceof Element && it.matches("kbd, svg")));
  return parts
    .map((it) => it.textContent ?? "")
    .join("")
    .trim();
}

/** Whose button it is, where several have the same words. */
function aboutOf(button: HTMLElement): string {
  const place = button.closest("article, li");
  const title = place?.querySelector(".who, .title b, .by b, b") ?? place?.firstElementChild;
  return title?.textContent?.trim().slice(0, 60) ?? "";
}

/** The buttons of the view. One that has become another one since then is not pressed. */
export function buttonsHere(): Button[] {
  const found: Button[] = [];
  for (const button of document.querySelectorAll<HTMLButtonElement>("main button:not([disabled])")) {
    const [words, about] = [wordsOf(button), aboutOf(button)];
    if (words === "" || !button.checkVisibility()) continue;
    const need = button.closest<HTMLElement>("[data-need]")?.dataset.need;
    found.push({
      words,
      about,
      act: () => {
        const isSame = wordsOf(button) === words && button.closest<HTMLElement>("[data-need]")?.dataset.need === need;
        if (button.isConnected && isSame) button.click();
      },
    });
  }
  return found;
}
