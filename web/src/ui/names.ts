// What things are called. Two agents may have one name: then something else stands beside it.
import { store } from "../store/store";

/** An agent by its name, else by the first letters of its id. */
export function nameOf(id: string): string {
  if (id === "human") return "You";
  const entry = store.agent(id);
  if (!entry) {
    store.askAgent(id);
    return id.slice(0, 4);
  }
  return entry.view.name ?? id.slice(0, 4);
}

/** What tells it from another of its name, if there is one. */
export function besides(id: string): string | null {
  const entry = store.agent(id);
  if (!entry?.view.name || !store.state) return null;
  const step = entry.view.assignment?.step;
  let besides: string | null = null;
  for (const { view } of store.state.agents.values()) {
    if (view.id === id || view.name !== entry.view.name) continue;
    // A step tells them apart, unless both work on it.
    if (!step || view.assignment?.step === step) return id.slice(0, 4);
    besides = step;
  }
  return besides;
}

export function questName(id: string): string {
  return store.state?.quests.get(id)?.request ?? id.slice(0, 6);
}

/** Where an agent belongs: its step, or nowhere, with what tells it from another of its name. */
export function whereOf(id: string): string {
  const step = store.agent(id)?.view.assignment?.step ?? "on its own";
  const also = besides(id);
  return also && also !== step ? `${step} · ${also}` : step;
}

export function projectName(): string {
  const path = store.state?.project ?? "";
  return path.split("/").filter(Boolean).at(-1) ?? "hatchery";
}
