// Addresses of views. The daemon answers each of them with the same document.
import { useLayoutEffect, useReducer } from "preact/hooks";

export interface Place {
  path: string;
  /** The parts of the path: `["quests", "abc"]`. */
  parts: string[];
  query: URLSearchParams;
  hash: string;
}

const listeners = new Set<() => void>();

export function place(): Place {
  const { pathname, search, hash } = location;
  return {
    path: pathname,
    parts: pathname.split("/").filter(Boolean).map(decoded),
    query: new URLSearchParams(search),
    hash: hash.slice(1),
  };
}

/** A part of an address that somebody cut in the middle of a letter stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function go(to: string, how: "push" | "replace" = "push"): void {
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  for (const listener of listeners) listener();
}

export function usePlace(): Place {
  const [, again] = useReducer<number, void>((n) => n + 1, 0);
  useLayoutEffect(() => {
    const hear = () => again();
    listeners.add(hear);
    return () => void listeners.delete(hear);
  }, []);
  return place();
}

/** Links of the page stay in the page. */
export function listen(): void {
  addEventListener("popstate", () => {
    for (const listener of listeners) listener();
  });
  document.addEventListener("click", (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = (event.target as Element).closest?.("a[href]") as HTMLAnchorElement | null;
    if (!link || link.target || link.origin !== location.origin || link.pathname.startsWith("/api/")) return;
    event.preventDefault();
    go(link.pathname + link.search + link.hash);
    if (!link.hash) scrollTo(0, 0);
  });
}

export const to = {
  home: "/",
  quest: (id: string, step?: string) =>
    `/quests/${encodeURIComponent(id)}${step ? `/${encodeURIComponent(step)}` : ""}`,
  agent: (id: string, hash?: string) => `/agents/${encodeURIComponent(id)}${hash ? `#${hash}` : ""}`,
  event: (id: number) => `/log#${id}`,
};
