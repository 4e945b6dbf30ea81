// A conversation: messages as they were said, tools folded to a line.
import { Component } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { MessageView } from "../api/types";
import { forkDialog } from "../app/dialogs";
import { to } from "../app/router";
import { type ToolCall, toolCall, toolName, toolResult, toolTarget } from "../store/state";
import { Glyph } from "./glyph";
import { Icon } from "./icon";
import { Markdown } from "./markdown";
import { memo } from "./memo";
import { nameOf } from "./names";
import { Age, At } from "./time";
import { group, literal, plain, plural, span } from "./words";

export type Shown = MessageView;

/** What stands between messages: a crash, an interruption. */
export interface Note {
  id: number;
  ts: number;
  words: string;
}

interface Tool {
  id: number;
  ts: number;
  call: ToolCall;
  result: { content: string; isError: boolean; ts: number } | null;
}

/** What is shown in one piece, and the place of its first message in the conversation. */
type Item = { at: number } & (
  | { kind: "message"; message: Shown }
  | { kind: "tools"; id: number; tools: Tool[] }
  | { kind: "note"; note: Note }
);

/** How many messages are laid out together: a message that comes changes its own group, and the browser leaves the others alone. */
const GROUP = 25;

/** Five calls in a row become one line. */
const FOLD_FROM = 5;
/** How much of a tool's words is shown. */
const MAX_OUTPUT = 20_000;

export function itemsOf(messages: Shown[], notes: Note[] = []): Item[] {
  const items: Item[] = [];
  const open = new Map<string, Tool>();
  const waiting = [...notes].sort((a, b) => a.id - b.id);
  for (const [at, message] of messages.entries()) {
    while (waiting[0] && waiting[0].id < message.id) items.push({ at, kind: "note", note: waiting.shift() as Note });
    if (message.kind === "tool_call") {
      const call = toolCall(message.content) ?? {
        id: String(message.id),
        name: "tool",
        input: { text: message.content },
      };
      const tool: Tool = { id: message.id, ts: message.ts, call, result: null };
      open.set(call.id, tool);
      const last = items.at(-1);
      if (last?.kind === "tools") last.tools.push(tool);
      else items.push({ at, kind: "tools", id: message.id, tools: [tool] });
    } else if (message.kind === "tool_result") {
      const result = toolResult(message.content);
      const tool = result ? open.get(result.id) : undefined;
      if (tool && result) tool.result = { content: result.content, isError: result.isError, ts: message.ts };
    } else if (message.kind !== "assistant" || message.content.trim() !== "") {
      // Of a message that was only a report about the seats nothing is left to read.
      items.push({ at, kind: "message", message });
    }
  }
  for (const note of waiting) items.push({ at: messages.length, kind: "note", note });
  return items;
}

/** The items in groups. `first` is the place of the first message that is shown: an item stays in its group when earlier ones leave. */
function groupsOf(items: Item[], first: number): [number, Item[]][] {
  const groups = new Map<number, Item[]>();
  for (const item of items) {
    const number = Math.floor((first + item.at) / GROUP);
    const group = groups.get(number);
    if (group) group.push(item);
    else groups.set(number, [item]);
  }
  return [...groups];
}

interface TalkProps {
  messages: Shown[];
  notes?: Note[];
  /** The place of the first message in the conversation. */
  first?: number;
  small?: boolean;
  agent?: string;
}

export function Talk({ messages, notes, first = 0, small = false, agent }: TalkProps) {
  const groups = useMemo(() => groupsOf(itemsOf(messages, notes), first), [messages, notes, first]);
  return (
    <>
      {groups.map(([number, items]) => (
        <Group key={number} items={items} names={namesOf(items)} small={small} agent={agent} />
      ))}
    </>
  );
}

interface GroupProps {
  items: Item[];
  /** Whoever speaks in it, who may be given another name. */
  names: string;
  small: boolean;
  agent: string | undefined;
}

function namesOf(items: Item[]): string {
  const speakers = new Set<string>();
  for (const item of items) if (item.kind === "message") speakers.add(item.message.agent);
  return [...speakers].map(nameOf).join("\n");
}

/** Whether two items show the same. Messages are never changed; a tool is answered once. */
function same(a: Item, b: Item): boolean {
  if (a.kind === "message") return b.kind === "message" && a.message === b.message;
  if (a.kind === "note") return b.kind === "note" && a.note === b.note;
  return (
    b.kind === "tools" &&
    a.tools.length === b.tools.length &&
    a.tools.every((tool, at) => tool.id === b.tools[at]?.id && tool.result?.ts === b.tools[at]?.result?.ts)
  );
}

/** A long conversation has many groups, and mostly only the last one is new. */
class Group extends Component<GroupProps> {
  override shouldComponentUpdate({ items, names, small, agent }: GroupProps): boolean {
    const now = this.props;
    if (names !== now.names || small !== now.small || agent !== now.agent || items.length !== now.items.length)
      return true;
    return !items.every((item, at) => same(item, now.items[at] as Item));
  }

  override render() {
    const { items, small, agent } = this.props;
    return (
      <div class="group">
        {items.map((item) => {
          if (item.kind === "tools")
            return <Tools key={`t${item.id}`} tools={item.tools} running={agent !== undefined} />;
          if (item.kind === "note") return <NoteLine key={`n${item.note.id}`} note={item.note} />;
          const { message } = item;
          return (
            <Message key={message.id} message={message} name={nameOf(message.agent)} small={small} forkFrom={agent} />
          );
        })}
      </div>
    );
  }
}

function NoteLine({ note }: { note: Note }) {
  return (
    <p class="note">
      <Icon name="again" size={14} />
      <span>
        <At at={note.ts} /> {note.words}{" "}
        <a class="link id" href={to.event(note.id)}>
          #{group(note.id)}
        </a>
      </span>
    </p>
  );
}

const QUIET: Partial<Record<MessageView["kind"], string>> = {
  clear: "began anew: nothing before this counts",
  mark: "a place was marked",
  rewind: "went back to an earlier place",
  interrupted: "its turn was broken off",
  agent_killed: "another agent was killed",
  command: "a command",
  fork: "was forked",
  usage: "usage",
};

interface MessageProps {
  message: Shown;
  /** Its speaker, who may be given another name. */
  name: string;
  small: boolean;
  forkFrom: string | undefined;
}

/** A long conversation has hundreds of them, and mostly one is new. */
const Message = memo(({ message, name, small, forkFrom }: MessageProps) => {
  const quiet = QUIET[message.kind];
  if (quiet)
    return (
      <NoteLine
        note={{
          id: message.id,
          ts: message.ts,
          words: message.content ? `${quiet}: ${plain(message.content).slice(0, 200)}` : quiet,
        }}
      />
    );
  const human = message.kind === "user" || message.kind === "system";
  return (
    <article
      class={`msg${human ? " is-human" : ""}${message.interrupted ? " is-interrupted" : ""}`}
      id={`e${message.id}`}
      tabIndex={-1}
      data-message={message.id}
    >
      <div class="by">
        <b>{message.kind === "system" ? "System" : human ? "You" : name}</b>
        <At at={message.ts} />
        <a class="id" href={to.event(message.id)} title={`Event ${message.id} in the log`}>
          #{group(message.id)}
        </a>
        {message.unheard && <span>not heard yet</span>}
        {message.interrupted && <span>interrupted</span>}
        {!small && forkFrom && (
          <span class="do">
            <button class="btn line" type="button" onClick={() => forkDialog(forkFrom, nameOf(forkFrom), message.id)}>
              <Icon name="fork" size={14} />
              Fork here
            </button>
            <button class="btn" type="button" onClick={() => void navigator.clipboard?.writeText(message.content)}>
              Copy
            </button>
          </span>
        )}
      </div>
      <div class="body">{human ? <Said text={message.content} /> : <Markdown text={message.content} />}</div>
    </article>
  );
});

/** Long instructions are folded: somebody wants to see what came of them. */
function Said({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const long = text.length > 600;
  const shown = long && !open ? `${text.slice(0, 480).trimEnd()} …` : text;
  return (
    <div class="prose said-by-you">
      {plain(shown)}
      {long && (
        <button class="link small plain-btn block" type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `Show all ${group(text.length)} characters`}
        </button>
      )}
    </div>
  );
}

function Tools({ tools, running }: { tools: Tool[]; running: boolean }) {
  if (tools.length < FOLD_FROM) {
    return (
      <div class="tools">
        {tools.map((tool) => (
          <ToolLine key={tool.id} tool={tool} running={running} />
        ))}
      </div>
    );
  }
  const counts = new Map<string, number>();
  for (const tool of tools) counts.set(toolName(tool.call.name), (counts.get(toolName(tool.call.name)) ?? 0) + 1);
  const words = [...counts].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${name} ${n}`);
  const last = tools.at(-1);
  const took = (last?.result?.ts ?? last?.ts ?? 0) - (tools[0]?.ts ?? 0);
  const failed = tools.filter((tool) => tool.result?.isError).length;
  return (
    <details class="tools">
      <summary>
        <Icon name="right" size={12} />
        <b>{tools.length} tool calls</b>
        <span class="faint cut">{words.join(", ")}</span>
        <span class="res">
          {failed > 0 && (
            <span class="bad">
              {failed} failed{took >= 1000 && " · "}
            </span>
          )}
          {took >= 1000 && span(took)}
        </span>
      </summary>
      {tools.map((tool) => (
        <ToolLine key={tool.id} tool={tool} running={running} />
      ))}
    </details>
  );
}

function ToolLine({ tool, running }: { tool: Tool; running: boolean }) {
  const [open, setOpen] = useState(false);
  const { call, result } = tool;
  const edit =
    typeof call.input.new_string === "string" ||
    (typeof call.input.content === "string" && typeof call.input.file_path === "string");
  return (
    <details class="tool" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {!result && running ? <Glyph as="working" word="runs" /> : <Icon name="right" size={12} />}
        <b>{toolName(call.name)}</b>
        <span class="cut">
          <code>{toolTarget(call.input)}</code>
        </span>
        <span class={`res${result?.isError ? " bad" : ""}`}>{outcome(tool)}</span>
      </summary>
      {open && (
        <>
          {edit ? (
            <Edit input={call.input} />
          ) : (
            <pre class="out" tabIndex={0}>
              {plain(pretty(call.input))}
            </pre>
          )}
          {result && (
            <pre class="out" tabIndex={0}>
              {plain(result.content.slice(0, MAX_OUTPUT)) || "It answered nothing."}
              {result.content.length > MAX_OUTPUT && "\n…"}
            </pre>
          )}
          <p class="small faint">
            <a class="link id" href={to.event(tool.id)}>
              #{group(tool.id)}
            </a>
          </p>
        </>
      )}
    </details>
  );
}

function outcome(tool: Tool): preact.ComponentChildren {
  if (!tool.result) return <Age at={tool.ts} />;
  const first =
    plain(tool.result.content)
      .split("\n")
      .find((line) => line.trim() !== "") ?? "";
  if (tool.result.isError) return first.length > 60 ? "failed" : first || "failed";
  const took = tool.result.ts - tool.ts;
  const edited = tool.call.input.new_string;
  if (typeof edited === "string") {
    const old = tool.call.input.old_string;
    const [added, removed] = [
      edited.split("\n").length,
      typeof old === "string" && old !== "" ? old.split("\n").length : 0,
    ];
    return (
      <>
        <span class="plus">+{added}</span> {removed > 0 && <span class="minus">−{removed}</span>}
      </>
    );
  }
  const passed = /(\d+) passed/.exec(tool.result.content)?.[0];
  return [passed, took >= 1000 ? span(took) : ""].filter(Boolean).join(" · ");
}

function pretty(input: Record<string, unknown>): string {
  const entries = Object.entries(input);
  if (entries.length === 0) return "without arguments";
  if (entries.length === 1 && typeof entries[0]?.[1] === "string") return entries[0][1] as string;
  return JSON.stringify(input, null, 2);
}

/** What an edit takes out and puts in. */
function Edit({ input }: { input: Record<string, unknown> }) {
  const lines = (value: unknown) => (typeof value === "string" && value !== "" ? value.split(/\r?\n/) : []);
  return (
    <pre class="out" tabIndex={0}>
      {lines(input.old_string).map((line, at) => (
        <span class="minus block" key={`o${at}`}>
          − {literal(line)}
        </span>
      ))}
      {lines(input.new_string ?? input.content).map((line, at) => (
        <span class="plus block" key={`n${at}`}>
          + {literal(line)}
        </span>
      ))}
    </pre>
  );
}

export const messagesWord = (n: number) => `${group(n)} ${plural(n, "message")}`;
