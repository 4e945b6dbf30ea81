// The status document and the ideas, as they change. Fields may hold anything: other programs write them, too.
import { useEffect, useState } from "preact/hooks";
import { useVisible } from "./visible";

export type Fields = Record<string, unknown>;

export interface LiveStatus {
  state: Fields;
  ideas: Fields[];
}

/** Applies one event of the stream. */
export function applied(known: LiveStatus | null, event: string, data: unknown): LiveStatus | null {
  switch (event) {
    case "status":
      return { state: object(data), ideas: known?.ideas ?? [] };
    case "change":
      return known && { ...known, state: { ...known.state, ...object(data) } };
    case "inbox":
      return known && { ...known, ideas: objects(data) };
    default:
      return known;
  }
}

export function useStatus(): LiveStatus | null {
  const [status, setStatus] = useState<LiveStatus | null>(null);
  const visible = useVisible();
  useEffect(() => {
    if (!visible) return;
    // The browser comes back by itself, and the first event has everything again.
    const source = new EventSource("/api/status/live");
    for (const name of ["status", "change", "inbox"]) {
      source.addEventListener(name, (message) => {
        const data: unknown = JSON.parse((message as MessageEvent<string>).data);
        setStatus((known) => applied(known, name, data));
      });
    }
    return () => source.close();
  }, [visible]);
  return status;
}

export function object(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function objects(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter((it) => typeof it === "object" && it !== null).map(object) : [];
}

export function text(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value : typeof value === "number" ? String(value) : null;
}

/** What a build run asks. Other programs may write the question as a text. */
export function pendingQuestion(run: Fields): string | null {
  return text(object(run.pendingQuestion).text) ?? text(run.pendingQuestion);
}

export function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

/** A time in ISO 8601, as milliseconds. */
export function time(value: unknown): number | null {
  const at = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}
