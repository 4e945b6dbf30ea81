// How many lines were changed, beside a row. Asked for again when there was something new to say, and not more often than every few
// seconds: a difference is made by git.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import type { ChangeSet } from "../api/types";
import { Lines } from "./changes";
import { plural } from "./words";

const PAUSE_MS = 4000;

interface Known {
  stamp: number;
  at: number;
  set: ChangeSet | null;
}

const known = new Map<string, Known>();

export function ChangedLines({ base, stamp, files = false }: { base: string; stamp: number; files?: boolean }) {
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
  const set = have?.set;
  if (!set || set.added + set.removed === 0) return null;
  return (
    <span>
      <Lines added={set.added} removed={set.removed} />
      {files && ` in ${set.files.length} ${plural(set.files.length, "file")}`}
    </span>
  );
}
