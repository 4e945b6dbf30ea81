// How many lines were changed, beside a row. Asked for again when there was something new to say, and not more often than every few
// seconds: a difference is made by git.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import type { ChangeSet } from "../api/types";
import { Lines } from "./changes";

const PAUSE_MS = 4000;

interface Known {
  stamp: number;
  at: number;
  set: ChangeSet | null;
}

const known = new Map<string, Known>();

export function ChangedLines({ base, stamp }: { base: string; stamp: number }) {
  const [, again] = useState(0);
  const have = known.get(base);
  useEffect(() => {
    if (have && have.stamp === stamp) return;
    const wait = have ? Math.max(0, have.at + PAUSE_MS - Date.now()) : 0;
    const timer = setTimeout(() => {
      get<ChangeSet>(`${base}/changes`)
        .catch(() => null)
        .then((set) => {
          known.set(base, { stamp, at: Date.now(), set });
          again((n) => n + 1);
        });
    }, wait);
    return () => clearTimeout(timer);
  }, [base, stamp]);
  return have?.set ? <Lines added={have.set.added} removed={have.set.removed} /> : null;
}
