// A row that goes to another column is seen on its way there, and takes the focus along. Whoever wants no motion sees it in its new place at once.
import { useLayoutEffect, useRef } from "preact/hooks";

/** From where a row left, and when. */
interface Leaving {
  column: string;
  from: DOMRect;
  focused: boolean;
  at: number;
}

/** A process takes a moment to end after its last turn: so long its row is in no column, and then in another one. */
const BETWEEN_MS = 3000;

const rowOf = (key: string) => document.querySelector<HTMLElement>(`[data-mover="${CSS.escape(key)}"]`);

/** How long it is on its way, in milliseconds: the token, which is nothing with reduced motion. */
function duration(): number {
  const token = getComputedStyle(document.documentElement).getPropertyValue("--calm").trim();
  const number = Number.parseFloat(token) || 0;
  return token.endsWith("ms") ? number : number * 1000;
}

/** In which column each row is, by the key that its element has as `data-mover`. */
export function useMoves(columns: ReadonlyMap<string, string>): void {
  const before = useRef(columns);
  const leaving = useRef(new Map<string, Leaving>());
  // While this is drawn, the rows are still where they were.
  for (const [key, column] of before.current) {
    if (columns.get(key) === column) continue;
    const row = rowOf(key);
    if (!row) continue;
    const focused = row.contains(document.activeElement);
    leaving.current.set(key, { column, from: row.getBoundingClientRect(), focused, at: performance.now() });
  }
  before.current = columns;
  useLayoutEffect(() => {
    for (const [key, { column, from, focused, at }] of leaving.current) {
      const now = columns.get(key);
      if (now === undefined && performance.now() - at < BETWEEN_MS) continue;
      leaving.current.delete(key);
      const row = now !== undefined && now !== column ? rowOf(key) : null;
      if (!row || performance.now() - at >= BETWEEN_MS) continue;
      if (focused && isNowhere(document.activeElement)) focus(row);
      move(row, from);
    }
  });
}

/** Nobody has put the focus elsewhere meanwhile. */
const isNowhere = (element: Element | null) => element === null || element === document.body || element.id === "main";

/** What asks is no link itself, but has one. */
function focus(row: HTMLElement): void {
  (row.querySelector<HTMLElement>("a") ?? row).focus({ preventScroll: true });
}

function move(row: HTMLElement, from: DOMRect): void {
  const ms = duration();
  if (ms === 0) return;
  const now = row.getBoundingClientRect();
  const away = `translate(${from.left - now.left}px, ${from.top - now.top}px)`;
  row.animate([{ transform: away }, { transform: "none" }], { duration: ms, easing: "cubic-bezier(0.2, 0, 0, 1)" });
}
