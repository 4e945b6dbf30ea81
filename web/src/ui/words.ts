// Numbers, times and counts as the page says them.
import type { Money, Usage } from "../api/types";

const NUMBERS = [
  "No",
  "One",
  "Two",
  "Three",
  "Four",
  "Five",
  "Six",
  "Seven",
  "Eight",
  "Nine",
  "Ten",
  "Eleven",
  "Twelve",
];

/** A count at the beginning of a sentence. */
export function Count(n: number): string {
  return NUMBERS[n] ?? group(n);
}

export function count(n: number): string {
  return n < NUMBERS.length ? Count(n).toLowerCase() : group(n);
}

// A formatter costs a hundred times what it is to use one: each is made once.
const GROUPED = new Intl.NumberFormat("en-US");
const EXACT = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

export function group(n: number): string {
  return GROUPED.format(n);
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return n === 1 ? one : many;
}

/** Less than this is not told apart. */
const SMALLEST = 0.000001;

/** `$0.41`, `$0`, and as many places as are needed to see something. */
export function money(amount: Money | undefined | null): string {
  const nanos = amount?.nanodollars ?? 0;
  if (nanos === 0) return "$0";
  const dollars = nanos / 1e9;
  if (dollars >= 0.01) return `$${dollars.toFixed(2)}`.replace(/\.00$/, "");
  if (dollars < SMALLEST) return `<$${SMALLEST.toFixed(6)}`;
  return `$${dollars.toPrecision(1).includes("e") ? dollars.toFixed(6).replace(/0+$/, "") : dollars.toPrecision(1)}`;
}

/** A ceiling: whole dollars without cents. */
export function ceiling(amount: Money): string {
  const dollars = amount.nanodollars / 1e9;
  return Number.isInteger(dollars) ? `$${dollars}` : money(amount);
}

export function tokens(n: number): string {
  if (n < 1000) return String(n);
  if (n < 1_000_000) return `${Math.round(n / 1000)}k`;
  return `${(n / 1_000_000).toFixed(1)}M`;
}

export function allTokens(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `12 s`, `4 min`, `2 h`, `1 day`, `4 days`: the same rule as `length` in `app/src/clock.rs`. */
export function span(ms: number): string {
  if (ms < MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  if (ms < 2 * DAY) return "1 day";
  return `${Math.floor(ms / DAY)} days`;
}

/** The same in a sentence: `12 minutes`. */
export function spanInWords(ms: number): string {
  const say = (n: number, unit: string) => `${n} ${plural(n, unit)}`;
  if (ms < MINUTE) return say(Math.max(0, Math.floor(ms / SECOND)), "second");
  if (ms < HOUR) return say(Math.floor(ms / MINUTE), "minute");
  if (ms < DAY) return say(Math.floor(ms / HOUR), "hour");
  return say(Math.floor(ms / DAY), "day");
}

/** `9 Nov`. */
export function day(at: number): string {
  return DATE.format(at);
}

const pad = (n: number) => String(n).padStart(2, "0");

/** `14:02`, local. People are shown `when`, which adds the date where it is not today's. */
function clock(at: number): string {
  const date = new Date(at);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/** `14:02:11`, local: for what is a matter of seconds. */
export function clockSeconds(at: number): string {
  return `${clock(at)}:${pad(new Date(at).getSeconds())}`;
}

function isSameDay(at: number, now: number): boolean {
  const [a, b] = [new Date(at), new Date(now)];
  return a.getDate() === b.getDate() && a.getMonth() === b.getMonth() && a.getFullYear() === b.getFullYear();
}

/** The one way to tell people a moment: `14:02`, or `9 Nov, 14:02` when it is not today. */
export function when(at: number, now: number): string {
  return isSameDay(at, now) ? clock(at) : `${DATE.format(at)}, ${clock(at)}`;
}

/** The same where two moments may be of one minute, and each leads into the log: `14:02:11`. */
export function whenToTheSecond(at: number, now: number): string {
  return isSameDay(at, now) ? clockSeconds(at) : when(at, now);
}

/** A moment in the log, where the order within a second matters: `14:02:11.412`, or like any other when it is not today. */
export function whenLogged(at: number, now: number): string {
  return isSameDay(at, now)
    ? `${clockSeconds(at)}.${String(new Date(at).getMilliseconds()).padStart(3, "0")}`
    : when(at, now);
}

/** The exact time with its zone, for those who hover. */
export function exact(at: number): string {
  return EXACT.format(at);
}

export function firstLine(text: string): string {
  const line = text.split("\n").find((it) => it.trim() !== "") ?? "";
  return line.trim();
}

/** As a sentence begins. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Joins words as a sentence does: `a`, `a and b`, `a, b and c`. */
export function list(words: string[]): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

/** Control characters and terminal colours say nothing here, and what turns the order of letters round would say something else. */
export function plain(text: string): string {
  return text.replace(
    /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g,
    "",
  );
}

/** Text that somebody decides on: what a screen would hide or turn round is shown by its number. */
export function literal(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (it) => `<U+${(it.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}
