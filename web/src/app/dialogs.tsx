// Dialogs: what begins something, and the two deeds that ask first.
import { signal } from "./signal";

export type Dialog = { kind: "quest"; request?: string } | { kind: "agent" } | null;

export const dialog = signal<Dialog>(null);

export function openDialog(kind: "quest" | "agent", request = ""): void {
  dialog.set(kind === "quest" ? { kind, request } : { kind });
}
