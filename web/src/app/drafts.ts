// Words that were typed and not sent. They survive a reload, and leave when they were sent.
import { useState } from "preact/hooks";

/** What was typed and not sent, if there is something. */
export function read(key: string): string {
  try {
    return localStorage.getItem(`draft:${key}`) ?? "";
  } catch {
    return "";
  }
}

function write(key: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(`draft:${key}`);
    else localStorage.setItem(`draft:${key}`, text);
  } catch {
    // Without storage a draft lives as long as its field.
  }
}

export function useDraft(key: string): [string, (text: string) => void] {
  const [draft, set] = useState({ key, text: read(key) });
  const current = draft.key === key ? draft : { key, text: read(key) };
  return [
    current.text,
    (text) => {
      write(key, text);
      set({ key, text });
    },
  ];
}

/** A small thing to remember on this machine. */
export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // It is a comfort, nothing more.
  }
}
