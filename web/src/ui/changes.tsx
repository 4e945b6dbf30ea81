// What was changed: the files, and the difference of one, line by line.
import { useEffect, useState } from "preact/hooks";
import { get, type Problem } from "../api/client";
import type { ChangeSet, FileDiff } from "../api/types";
import { Glyph } from "./glyph";
import { literal, plural } from "./words";

export interface Loader {
  all(): Promise<ChangeSet>;
  file(path: string): Promise<FileDiff>;
}

/** The changes of an agent, a step or a quest, by its place in the API. */
export function changesOf(base: string): Loader {
  return {
    all: () => get(`${base}/changes`),
    file: (path) => get(`${base}/changes?file=${encodeURIComponent(path)}`),
  };
}

/** Added and removed lines with their sign; a zero is left out. */
export function Lines({ added, removed }: { added: number; removed: number }) {
  return (
    <span class="num">
      {added > 0 && <span class="plus">+{added}</span>} {removed > 0 && <span class="minus">−{removed}</span>}
    </span>
  );
}

export function Changes({ load, empty }: { load: Loader; empty: string }) {
  const [changes, setChanges] = useState<ChangeSet | Problem | null>(null);
  const [open, setOpen] = useState<string | null>(null);
  useEffect(() => {
    load.all().then(setChanges, setChanges);
  }, []);
  if (changes === null) return <p class="small faint">Reading the changes …</p>;
  if (changes instanceof Error) {
    return (
      <p class="refused">
        <Glyph as="failed" />
        <span>
          {changes.message} <span class="faint">{changes.hint}</span>
        </span>
      </p>
    );
  }
  if (changes.files.length === 0) return <p class="small faint changes-none">{empty}</p>;
  return (
    <section class="changes" aria-label="Changes">
      <h3>
        Changed <Lines added={changes.added} removed={changes.removed} />
        <span class="faint small">
          {changes.files.length}
          {changes.truncated ? "+" : ""} {plural(changes.files.length, "file")}
        </span>
      </h3>
      <ul class="files">
        {changes.files.map((file) => (
          <li key={file.path}>
            <button
              class="file"
              type="button"
              aria-expanded={open === file.path}
              onClick={() => setOpen(open === file.path ? null : file.path)}
            >
              <span class="path cut">
                <bdi>{literal(file.path)}</bdi>
              </span>
              {file.how !== "modified" && <span class="faint small">{file.how}</span>}
              {file.binary ? (
                <span class="faint small">binary</span>
              ) : (
                <Lines added={file.added} removed={file.removed} />
              )}
            </button>
            {open === file.path && <Diff load={load} path={file.path} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Diff({ load, path }: { load: Loader; path: string }) {
  const [diff, setDiff] = useState<FileDiff | Problem | null>(null);
  useEffect(() => {
    load.file(path).then(setDiff, setDiff);
  }, [path]);
  if (diff === null) return <p class="small faint">Reading …</p>;
  if (diff instanceof Error) return <p class="small">{diff.message}</p>;
  return <DiffText text={diff.diff} truncated={diff.truncated} />;
}

/** A unified diff with the numbers of its lines. */
export function DiffText({ text, truncated = false }: { text: string; truncated?: boolean }) {
  let [before, after] = [0, 0];
  const rows = text.split("\n").flatMap((line, at) => {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      return [
        <tr key={at} class="hunk">
          <td />
          <td />
          <td>{hunk[3]?.trim() || "…"}</td>
        </tr>,
      ];
    }
    // The head says which files; that stands above.
    if (before === 0 && after === 0) return [];
    const sign = line[0] ?? " ";
    if (sign === "\\") return [];
    const look = sign === "+" ? "add" : sign === "-" ? "del" : "";
    const [left, right] = [sign === "+" ? "" : before++, sign === "-" ? "" : after++];
    return [
      <tr key={at} class={look}>
        <td aria-hidden="true">{left}</td>
        <td aria-hidden="true">{right}</td>
        <td>
          <span aria-hidden="true">{sign === "-" ? "−" : sign === "+" ? "+" : " "} </span>
          {look && <span class="sr">{look === "add" ? "added: " : "removed: "}</span>}
          {literal(line.slice(1).replace(/\r$/, ""))}
        </td>
      </tr>,
    ];
  });
  return (
    <div class="diff" tabIndex={0} role="group" aria-label="Difference">
      <table>
        <tbody>{rows}</tbody>
      </table>
      {truncated && <p class="small faint">It goes on; this is the first part.</p>}
    </div>
  );
}
