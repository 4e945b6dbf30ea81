// Times that grow old on the page. One clock for all of them.
import { useEffect, useState } from "preact/hooks";
import { store } from "../store/store";
import { exact, span, when } from "./words";

const ticking = new Set<() => void>();
let _timer: ReturnType<typeof setInterval> | undefined;

function tick(listener: () => void): () => void {
  ticking.add(listener);
  _timer ??= setInterval(() => {
    if (!document.hidden) for (const each of ticking) each();
  }, 1000);
  return () => ticking.delete(listener);
}

/** A text that depends on the time of day. Renders again only when it changes. */
export function useClock(say: (now: number) => string): string {
  const [text, set] = useState(() => say(store.now()));
  useEffect(() => {
    const look = () => set(say(store.now()));
    look();
    return tick(look);
  }, [say]);
  return text;
}

/** A moment, as people are told it everywhere; the exact one on hover. */
export function At({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {when(at, store.now())}
    </time>
  );
}

export function Age({ at }: { at: number }) {
  const [say, set] = useState(() => (now: number) => span(now - at));
  useEffect(() => set(() => (now: number) => span(now - at)), [at]);
  const text = useClock(say);
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {text}
    </time>
  );
}

/** "said this 3 s ago", amber when it is older than `staleAfter`. */
export function Ago({
  at,
  before = "",
  after = " ago",
  staleAfter,
}: {
  at: number;
  before?: string;
  after?: string;
  staleAfter?: number | null;
}) {
  const [say, set] = useState(() => sentence(at, before, after));
  useEffect(() => set(() => sentence(at, before, after)), [at, before, after]);
  const text = useClock(say);
  const stale = staleAfter != null && store.now() - at > staleAfter;
  return (
    <span class={stale ? "ago stale" : "ago"} title={exact(at)}>
      {text}
    </span>
  );
}

function sentence(at: number, before: string, after: string): (now: number) => string {
  return (now) => `${before}${span(now - at)}${after}`;
}
