// Times that grow old on the page. One clock for all of them.
import { useEffect, useState } from "preact/hooks";
import { store } from "../store/store";
import { age, exact, span, when } from "./words";

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

export function Age({ at, since = false }: { at: number; since?: boolean }) {
  const text = useClock(useSaying(at, since));
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {text}
    </time>
  );
}

function useSaying(at: number, since: boolean): (now: number) => string {
  const [say, set] = useState(() => (now: number) => (since ? span(now - at) : age(at, now)));
  useEffect(() => set(() => (now: number) => (since ? span(now - at) : age(at, now))), [at, since]);
  return say;
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
  return (now) => {
    const text = age(at, now);
    return /^[\d,]+ (s|min|h)$/.test(text) ? `${before}${text}${after}` : `${before}on ${text}`;
  };
}
