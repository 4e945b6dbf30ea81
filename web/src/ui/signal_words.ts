// What an agent says of its step, in a sentence.
import type { GivenSignal } from "../api/types";
import type { Standing } from "./glyph";

/** What a signal says, in a sentence. */
export function signalWords(signal: GivenSignal["signal"]): {
  words: string;
  standing: Standing;
  calls?: { role: string; reason: string };
} {
  if ("complete" in signal) return { words: signal.complete.summary || "is done", standing: "done" };
  if ("partially-complete" in signal)
    return { words: `ran out of room: ${signal["partially-complete"].progress}`, standing: "done" };
  if ("needs-user-input" in signal)
    return { words: `asks you: ${signal["needs-user-input"].question}`, standing: "you" };
  const call = signal["needs-role-followup"];
  return {
    words: "asked another role first",
    standing: "pending",
    calls: { role: call.target_role, reason: call.reason },
  };
}
