import { signal } from "./signal";

/** Open with what is typed in it, or closed. */
export const palette = signal<{ text: string } | null>(null);
