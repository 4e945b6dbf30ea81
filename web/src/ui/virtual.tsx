// A list of which only what is seen exists. Rows have one height; one of them may be open and taller.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Browsers lose count of pixels beyond some thirty millions. */
const MAX_PX = 15_000_000;
const BEYOND = 10;
/** Less than this is no scrolling: a browser may round a place. */
const STILL_PX = 2;

interface Props {
  count: number;
  height: number;
  /** The row that is open, and how much taller it is. */
  open: { at: number; extra: number } | null;
  /** Called when other rows are drawn, some of them beyond the edges, and when the list is scrolled away from its top or back. */
  seen: (first: number, last: number, isAtTop: boolean) => void;
  row: (at: number) => ComponentChildren;
  /** Brings a row into view when it changes. */
  jump: { at: number; id: number } | null;
  /** Called when somebody goes to the top by a key. */
  toTop?: () => void;
  label: string;
}

export function Virtual({ count, height, open, seen, row, jump, toTop, label }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [view, setView] = useState(600);
  const real = count * height + (open?.extra ?? 0);
  // A longer list is drawn on fewer pixels: then a pixel of the bar is more than one of the list.
  const drawn = Math.min(real, MAX_PX);
  const scale = drawn > view ? (real - view) / (drawn - view) : 1;
  const offset = top * scale;
  const indexAt = (px: number) => {
    if (!open || px <= (open.at + 1) * height) return Math.floor(px / height);
    if (px <= (open.at + 1) * height + open.extra) return open.at;
    return Math.floor((px - open.extra) / height);
  };
  const first = Math.max(0, indexAt(offset) - BEYOND);
  const last = Math.min(count - 1, indexAt(offset + view) + BEYOND);
  const topOf = (at: number) => at * height + (open && at > open.at ? open.extra : 0);

  useEffect(() => {
    const it = box.current;
    if (!it) return;
    const measure = () => setView(it.clientHeight);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(it);
    return () => watch.disconnect();
  }, []);
  // A jump scrolls before its scroll is heard of, so the box itself is asked.
  const isAtTop = () => (box.current?.scrollTop ?? 0) <= STILL_PX;
  useEffect(() => seen(first, last, isAtTop()), [first, last, top <= STILL_PX, count]);
  useLayoutEffect(() => {
    if (!jump || !box.current) return;
    box.current.scrollTop = Math.max(0, topOf(jump.at) - view / 3) / scale;
  }, [jump?.id]);

  const rows: ComponentChildren[] = [];
  for (let at = first; at <= last; at += 1) {
    rows.push(
      <div key={at} class="virtual-row" style={{ transform: `translateY(${topOf(at) - offset + top}px)` }}>
        {row(at)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="virtual"
      role="rowgroup"
      aria-label={label}
      tabIndex={0}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={(event) => {
        const it = event.currentTarget;
        const page = (view - height) / scale;
        if (event.key === "End") it.scrollTop = it.scrollHeight;
        else if (event.key === "Home") {
          it.scrollTop = 0;
          toTop?.();
        } else if (event.key === "PageDown") it.scrollTop += page;
        else if (event.key === "PageUp") it.scrollTop -= page;
        else return;
        event.preventDefault();
      }}
    >
      <div style={{ height: `${drawn}px` }}>{rows}</div>
    </div>
  );
}
