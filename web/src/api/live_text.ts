// What an agent is writing at the moment. It is not in the log: the log brings the text when it is whole.
import { useEffect, useState } from "preact/hooks";
import type { LivePiece } from "./types";
import { useVisible } from "./visible";

export interface Writing {
  kind: "text" | "thinking";
  text: string;
  since: number;
}

/** Applies one piece. */
export function written(known: Writing | null, piece: LivePiece): Writing | null {
  if (piece.type === "ended") return null;
  const { kind, begins, text, since } = piece;
  return begins || !known ? { kind, text, since } : { ...known, text: known.text + text };
}

/** The log may be behind the pieces: only what the agent said after the first words makes them whole. */
export function stillWritten(writing: Writing | null, saidAt: number): Writing | null {
  return writing && saidAt > writing.since ? null : writing;
}

/** What the agent writes. `saidAt` is the time of the last thing it said that is shown. */
export function useWriting(agent: string | null, saidAt: number): Writing | null {
  const [writing, setWriting] = useState<Writing | null>(null);
  const visible = useVisible();
  useEffect(() => {
    setWriting(null);
    if (!agent || !visible) return;
    const source = new EventSource(`/api/agents/${agent}/live`);
    source.onmessage = (message: MessageEvent<string>) => {
      const piece = JSON.parse(message.data) as LivePiece;
      setWriting((known) => written(known, piece));
    };
    // It comes back by itself, and the first piece has everything that was written so far.
    source.onerror = () => setWriting(null);
    return () => source.close();
  }, [agent, visible]);
  return stillWritten(writing, saidAt);
}

/** The last sentence of a thought that was begun. */
export function latestSentence(text: string): string {
  const line = text.trim().split("\n").at(-1)?.trim() ?? "";
  return line.split(/(?<=[.!?]) /).at(-1) ?? line;
}
