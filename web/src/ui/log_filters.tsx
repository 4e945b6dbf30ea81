// What to show of the log: words, agents, groups of types and a span of time, kept in the address of the page.
import { useState } from "preact/hooks";
import type { EventObject } from "../api/types";
import { prompt } from "../app/dialogs";
import { go } from "../app/router";
import { store } from "../store/store";
import { nameOf, questName } from "./names";
import { when } from "./words";

type EventType = EventObject["type"];

export interface LogFilters {
  /** What the daemon is asked for. */
  asked: Record<string, string>;
  /** A span of time, in milliseconds since 1970. */
  since: number | null;
  until: number | null;
}

const ASKED = ["agent", "quest", "step", "type", "without", "words"];

export function filtersOf(query: URLSearchParams): LogFilters {
  const asked = Object.fromEntries(ASKED.flatMap((key) => (query.get(key) ? [[key, query.get(key) ?? ""]] : [])));
  const moment = (key: string) => {
    const text = query.get(key);
    return text && Number.isFinite(Number(text)) ? Number(text) : null;
  };
  return { asked, since: moment("since"), until: moment("until") };
}

export const isFiltered = ({ asked, since, until }: LogFilters) =>
  Object.keys(asked).length > 0 || since !== null || until !== null;

/** Types that are wanted together, under one name. */
const GROUPS: { name: string; types: EventType[] }[] = [
  { name: "needs you", types: ["question_asked", "question_answered", "question_withdrawn"] },
  { name: "failures", types: ["run_crashed", "step_failed", "run_silent", "run_parked", "step_parked"] },
  { name: "messages", types: ["message_added"] },
  { name: "signals", types: ["signal_given"] },
  { name: "wards and merges", types: ["ward_begun", "ward_ended", "merge_begun", "merge_ended"] },
  { name: "mail", types: ["mail_sent", "mail_delivered", "mail_read"] },
  { name: "permissions", types: ["permission_decided", "permission_rule_added", "permission_rule_removed"] },
];
/** How far output was read and which calls were taken: true, and seldom what a person looks for. */
const BOOKKEEPING: EventType[] = ["output_taken", "call_taken", "message_heard"];

const nameOfTypes = (value: string) => GROUPS.find((it) => it.types.join() === value)?.name ?? value;

function words(key: string, value: string): string {
  switch (key) {
    case "agent":
      return `agent: ${nameOf(value)}`;
    case "quest":
      return `quest: ${questName(value)}`;
    case "type":
      return nameOfTypes(value);
    case "without":
      return value === BOOKKEEPING.join() ? "without bookkeeping" : `without ${value}`;
    case "since":
      return `since ${when(Number(value), store.now())}`;
    case "until":
      return `until ${when(Number(value), store.now())}`;
    default:
      return `${key}: ${value}`;
  }
}

function changed(change: (params: URLSearchParams) => void): string {
  const params = new URLSearchParams(location.search);
  change(params);
  return `/log${params.size > 0 ? `?${params}` : ""}`;
}

function set(values: Record<string, string>): void {
  go(
    changed((params) => {
      for (const [key, value] of Object.entries(values)) params.set(key, value);
    }),
  );
}

const HOUR = 3_600_000;

function today(): number {
  return new Date(store.now()).setHours(0, 0, 0, 0);
}

function askForTime(): void {
  prompt({
    title: "Go to a time",
    words: "A time of today such as 14:02, or a date and a time such as 2026-11-14 09:30.",
    label: "Since",
    value: "",
    button: "Show",
    act: async (text) => {
      const word = text.trim();
      const clock = /^(\d{1,2}):(\d{2})$/.exec(word);
      const at = clock
        ? new Date(store.now()).setHours(Number(clock[1]), Number(clock[2]), 0, 0)
        : Date.parse(word.replace(" ", "T"));
      if (!Number.isFinite(at)) throw { message: `${word} is no time.`, hint: "Write 14:02 or 2026-11-14 09:30." };
      set({ since: String(at) });
    },
  });
}

function understand(word: string): void {
  const id = Number(word.replaceAll(/[#,]/g, ""));
  if (/^#?[\d,]+$/.test(word) && id > 0) return go(`/log#${id}`);
  const agent = [...(store.state?.agents.values() ?? [])].find((it) => it.view.name === word || it.view.id === word);
  if (agent) return set({ agent: agent.view.id });
  const quest = questOf(word);
  if (quest) return set({ quest });
  const step = stepOf(word);
  if (step) return set(step);
  if (/^[a-z]+(_[a-z]+)+$/.test(word)) return set({ type: word });
  set({ words: word });
}

/** A quest by its request or by its id. */
function questOf(word: string): string | null {
  const lines = [...(store.state?.quests.values() ?? [])];
  const named = lines.findLast((it) => it.id === word || it.request.toLowerCase() === word.toLowerCase());
  return named?.id ?? null;
}

/** A step by its id: that of the quest that is shown, else that of the newest quest that has one. */
function stepOf(word: string): { quest: string; step: string } | null {
  const shown = new URLSearchParams(location.search).get("quest");
  const ids = [...(store.state?.quests.keys() ?? [])].reverse();
  const quest = [...(shown ? [shown] : []), ...ids].find((id) => store.quest(id)?.steps.some((it) => it.id === word));
  return quest ? { quest, step: word } : null;
}

export function FilterBar({ query }: { query: URLSearchParams }) {
  const [text, setText] = useState("");
  const chips = [...ASKED, "since", "until"].flatMap((key) => {
    const value = query.get(key);
    return value ? [{ key, value }] : [];
  });
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        const word = text.trim();
        if (word === "") return;
        setText("");
        understand(word);
      }}
    >
      <label class="sr" for="filter">
        Filter
      </label>
      <input
        class="field"
        id="filter"
        value={text}
        placeholder="Agent, quest, step, type, words or an id"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {chips.map(({ key, value }) => (
        <span class="chip" key={key}>
          {words(key, value)}
          <button
            type="button"
            aria-label={`Remove ${words(key, value)}`}
            onClick={() => go(changed((params) => params.delete(key)))}
          >
            ×
          </button>
        </span>
      ))}
      <Menu name="Type" choices={TYPES} />
      <Menu name="Time" choices={TIMES} />
    </form>
  );
}

type Choices = [string, () => void][];

const TYPES: Choices = [
  ...GROUPS.map(({ name, types }): Choices[number] => [name, () => set({ type: types.join() })]),
  ["without bookkeeping", () => set({ without: BOOKKEEPING.join() })],
];
const TIMES: Choices = [
  ["the last hour", () => set({ since: String(store.now() - HOUR) })],
  ["today", () => set({ since: String(today()) })],
  ["yesterday", () => set({ since: String(today() - 24 * HOUR), until: String(today()) })],
  ["since …", askForTime],
];

function Menu({ name, choices }: { name: string; choices: Choices }) {
  const id = `filter-${name}`;
  return (
    <span class="menu-of">
      <button class="btn quiet small-btn" type="button" popovertarget={id}>
        {name}
      </button>
      <div id={id} class="menu" popover="auto">
        {choices.map(([words, act]) => (
          <button key={words} type="button" popovertarget={id} popovertargetaction="hide" onClick={act}>
            {words}
          </button>
        ))}
      </div>
    </span>
  );
}
