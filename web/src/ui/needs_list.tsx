// What needs the human, one below the other. An answered card keeps its place and its height: another card under the same pointer would get a
// click that was meant for the first one.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { read } from "../app/drafts";
import { type Need, needs } from "../store/needs";
import type { State } from "../store/state";
import { store } from "../store/store";
import { Answered, Ask, isMine, NoLonger, takesWords } from "./ask";

/** How long a card that was settled keeps its place at least. A finger on glass leaves before its tap is heard of. */
const PLACE_MS = 8000;

interface Place {
  need: Need;
  /** Since when it needs nobody any more. */
  goneAt: number | null;
}

export function NeedsList({ state, held }: { state: State; held: boolean }) {
  const { places, opened } = usePlaces(needs(store), held);
  const here = new Set(places.map(({ need }) => need.key));
  // What somebody typed for a question that was answered elsewhere is kept until they decide what to do with it.
  const left = [...state.answered.values()].filter(
    ({ question }) => !here.has(`q${question.id}`) && !isMine(question) && read(`ask:${question.id}`).trim() !== "",
  );
  return (
    <>
      {places.map(({ need, goneAt }) => (
        <Card key={need.key} need={need} gone={goneAt !== null} first={need.key === opened} state={state} />
      ))}
      {left.map((it) => (
        <Answered key={it.event} {...it} />
      ))}
    </>
  );
}

/** The cards in their order. Nothing moves while a hand is among them, nor in the moment after one of them was settled. */
function usePlaces(waiting: Need[], held: boolean): { places: Place[]; opened: string | null } {
  const kept = useRef<Place[]>([]);
  const opened = useRef<string | null>(null);
  const [, again] = useState(0);
  const now = Date.now();
  const current = new Map(waiting.map((need) => [need.key, need]));
  const before = kept.current
    .map(({ need, goneAt }) => {
      const still = current.get(need.key);
      return still ? { need: still, goneAt: null } : { need, goneAt: goneAt ?? now };
    })
    .filter(({ goneAt }) => goneAt === null || held || now - goneAt < PLACE_MS);
  const isStill = held || before.some(({ goneAt }) => goneAt !== null);
  const known = new Set(before.map(({ need }) => need.key));
  const places = isStill
    ? [...before, ...waiting.filter((need) => !known.has(need.key)).map((need) => ({ need, goneAt: null }))]
    : waiting.map((need) => ({ need, goneAt: null }));
  kept.current = places;
  // The oldest that takes words is open at once. Another one does not open, and grow, while nothing may move.
  const isOpen = isStill && places.some(({ need }) => need.key === opened.current);
  if (!isOpen)
    opened.current = waiting.find((need) => need.kind === "question" && takesWords(need.question))?.key ?? null;
  const next = Math.min(...places.flatMap(({ goneAt }) => (goneAt === null ? [] : [goneAt + PLACE_MS - now])));
  useEffect(() => {
    // What is held leaves when the hand does, which renders the list again.
    if (held || !Number.isFinite(next)) return;
    const timer = setTimeout(() => again((n) => n + 1), Math.max(0, next) + 10);
    return () => clearTimeout(timer);
  });
  return { places, opened: opened.current };
}

function Card({ need, gone, first, state }: { need: Need; gone: boolean; first: boolean; state: State }) {
  const box = useRef<HTMLDivElement>(null);
  const height = useRef(0);
  useLayoutEffect(() => {
    if (!gone && box.current) height.current = box.current.offsetHeight;
  });
  // The focus stays where it was when the button that had it leaves.
  const focused = useRef(false);
  if (!gone) focused.current = false;
  else if (box.current?.contains(document.activeElement)) focused.current = true;
  useLayoutEffect(() => {
    if (gone && focused.current) box.current?.focus({ preventScroll: true });
  }, [gone]);
  const answered = gone && need.kind === "question" ? state.answered.get(need.question.id) : undefined;
  return (
    <div
      ref={box}
      class="need-place"
      tabIndex={gone ? -1 : undefined}
      style={gone ? { minHeight: `${height.current}px` } : undefined}
    >
      {!gone ? <Ask need={need} first={first} /> : answered ? <Answered {...answered} /> : <NoLonger need={need} />}
    </div>
  );
}
