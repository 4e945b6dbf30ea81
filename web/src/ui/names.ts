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
  for (const other of store.state.agents.values()) {
    if (other.view.id !== id && other.view.name === entry.view.name)
      return entry.view.assignment?.step ?? id.slice(0, 4);
  }
  return null;
}

export function questName(id: string): string {
  return store.state?.quests.get(id)?.request ?? id.slice(0, 6);
}

/** Where an agent belongs: its step, or nowhere. */
export function whereOf(id: string): string {
  const assignment = store.agent(id)?.view.assignment;
  return assignment ? assignment.step : "on its own";
}

export function projectName(): string {
  const path = store.state?.project ?? "";
  return path.split("/").filter(Boolean).at(-1) ?? "hatchery";
}
