// One agent: what does it do, how do we know, and what was said?
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import { useWriting } from "../api/live_text";
import type { WhyView } from "../api/types";
import { confirm, forkDialog, notify, prompt } from "../app/dialogs";
import { useDraft } from "../app/drafts";
import { useActions } from "../app/keys";
import { go, to, usePlace } from "../app/router";
import { useHistory } from "../store/history";
import type { AgentEntry } from "../store/state";
import { store, useAttempt, useTopics } from "../store/store";
import { questionWords } from "../ui/ask";
import { Changes, changesOf } from "../ui/changes";
import { Facts, FactsLine } from "../ui/facts";
import { Glyph, standingOf } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { SEND } from "../ui/key_names";
import { nameOf } from "../ui/names";
import { messagesWord, type Shown, Talk } from "../ui/talk";
import { Age, Ago, At } from "../ui/time";
import { group, list } from "../ui/words";
import { WritingNow } from "../ui/writing";
import { Loading, parkedUntil } from "./home";

/** How many items are shown before somebody asks for more. */
const SHOWN = 100;
/** The oldest ones that are shown leave in groups: when one leaves, everything below it is drawn in another place. */
const LEAVE = 50;
/** How near to the end counts as being there. */
const NEAR = 120;

export function AgentPage({ id }: { id: string }) {
  useTopics(`agent:${id}`, "questions", "usage");
  const entry = store.agent(id);
  const history = useHistory(entry ? id : null);
  const [missing, setMissing] = useState<Problem | null>(null);
  const { hash, query } = usePlace();
  const [why, setWhy] = useState(query.get("show") === "why");
  const [changes, setChanges] = useState(query.get("show") === "changes");
  const [facts, setFacts] = useState(false);

  const attempt = useAttempt(missing !== null);
  useEffect(() => {
    if (store.agent(id)) return;
    api.agent(id).then(
      (view) => {
        if (view.id !== id) go(to.agent(view.id), "replace");
        store.meet(view);
      },
      (problem: Problem) => setMissing(problem),
    );
  }, [id, store.state === null, attempt]);

  const name = nameOf(id);
  const kill = () => entry && void askKill(entry);
  const rename = () =>
    prompt({
      title: `Rename ${name}`,
      words: "Two agents may have one name.",
      label: "Name",
      value: entry?.view.name ?? "",
      button: "Rename",
      act: (text) => api.rename(id, text.trim()),
    });
  const lives = entry && entry.view.state !== "dead" && entry.view.state !== "expired";
  const runs = entry && ["starting", "working", "listening", "silent", "parked"].includes(entry.activity);
  const inTurn = entry && (entry.activity === "working" || entry.activity === "silent");
  useActions([
    lives && { key: "S", words: `Say something to ${name}`, act: () => document.getElementById("say")?.focus() },
    entry && { key: "F", words: `Fork ${name}`, act: () => forkDialog(id, name, chosenMessage()) },
    entry && {
      key: "D",
      words: changes ? "See the conversation" : "See the changes",
      act: () => setChanges((now) => !now),
    },
    entry && { key: "W", words: "How we know", act: () => setWhy((now) => !now) },
    entry && { key: "L", words: "See its events in the log", act: () => go(`/log?agent=${id}`) },
    inTurn && { key: "⇧I", words: "Interrupt its turn", act: () => act(api.interrupt(id)) },
    runs && { key: "X", words: `Stop ${name}`, act: () => act(api.stop(id)) },
    lives && { words: `Rename ${name}`, act: rename },
    lives && { words: `Kill ${name}`, act: kill },
  ]);
  if (!entry) {
    if (missing) return <NoAgent problem={missing} />;
    return <Loading />;
  }
  const { view } = entry;
  const parent = view.forkedFrom ?? view.parent;
  return (
    <>
      <header class="head tight">
        <div>
          <div class="crumb">
            <a href="/agents">Agents</a>
            {parent && (
              <>
                <span>/</span>
                <a href={to.agent(parent)}>{nameOf(parent)}</a>
              </>
            )}
          </div>
          <h1>{name}</h1>
        </div>
        <div class="actions right">
          {lives && (
            <button class="btn quiet hide-small" type="button" onClick={rename}>
              Rename
            </button>
          )}
          <button class="btn line" type="button" onClick={() => forkDialog(id, name, null)}>
            <Icon name="fork" size={14} />
            Fork <kbd>F</kbd>
          </button>
          {runs && (
            <button class="btn line" type="button" onClick={() => act(api.stop(id))}>
              Stop <kbd>X</kbd>
            </button>
          )}
          {lives && (
            <button class="btn quiet danger hide-small" type="button" onClick={kill}>
              Kill
            </button>
          )}
        </div>
      </header>
      <EvidenceBar entry={entry} open={why} toggle={() => setWhy(!why)} />
      <FactsLine entry={entry} open={facts} toggle={() => setFacts(!facts)} />
      <div class="agent-cols">
        <div class="talk-col">
          {changes ? (
            <Changes load={changesOf(`/api/agents/${id}`)} empty="It has changed nothing." />
          ) : (
            <Conversation
              entry={entry}
              messages={history.messages}
              notes={history.notes}
              loading={history.loading}
              problem={history.problem}
              hash={hash}
            />
          )}
          <Composer entry={entry} />
        </div>
        <Facts entry={entry} open={facts} changes={changes} showChanges={() => setChanges(!changes)} />
      </div>
    </>
  );
}

function act(deed: Promise<unknown>): void {
  deed.catch((problem: Problem) => notify(problem));
}

/** The message that J and K have chosen, to fork at. */
function chosenMessage(): number | null {
  const chosen = document.activeElement?.closest<HTMLElement>("[data-message]")?.dataset.message;
  return chosen ? Number(chosen) : null;
}

export async function askKill(entry: AgentEntry): Promise<void> {
  const { id } = entry.view;
  const name = nameOf(id);
  try {
    const [alone, all] = await Promise.all([api.killPreview(id, false), api.killPreview(id, true)]);
    const moved = alone.moved.map((it) => nameOf(it.agent));
    const parent = entry.view.parent ? nameOf(entry.view.parent) : "root";
    const one = moved.length === 1;
    const moves =
      moved.length > 0
        ? `${list(moved)} ${one ? "moves" : "move"} up to ${parent} and ${one ? "goes" : "go"} on. `
        : "";
    const ends = alone.stopped.length > 0 ? "Its run ends. " : "";
    const asks = alone.withdrawn.length > 0 ? "What it asks is withdrawn. " : "";
    confirm({
      title: `Kill ${name}?`,
      words: `${ends}${moves}${asks}Its history stays and can be forked.`,
      keep: "Keep it",
      choices: [
        ...(all.killed.length > 1
          ? [{ words: `Kill with all ${all.killed.length - 1} below`, quiet: true, act: () => api.kill(id, true) }]
          : []),
        { words: `Kill ${name}`, act: () => api.kill(id, false) },
      ],
    });
  } catch (problem) {
    notify(problem as Problem);
  }
}

function EvidenceBar({ entry, open, toggle }: { entry: AgentEntry; open: boolean; toggle: () => void }) {
  const { activity, run } = entry;
  const asked = [...(store.state?.questions.values() ?? [])].find((it) => it.agent === entry.view.id);
  const standing = asked ? "you" : standingOf(activity);
  const tool = [...entry.tools.values()].at(-1);
  return (
    <div class="evidence">
      <span class={`state is-${standing}`} role="status">
        <Glyph as={standing} silent />
        {asked ? "asks you" : activity}
      </span>
      {activity === "parked" ? (
        <span>{parkedUntil(entry)}</span>
      ) : run && run.phase !== "ended" ? (
        <span>
          said something <Ago at={entry.lastSign} staleAfter={entry.stallMs ? entry.stallMs / 10 : null} />
        </span>
      ) : (
        <span>
          {run ? "its run ended " : "active "}
          <Ago at={run?.lastOutput ?? entry.view.lastActive} />
        </span>
      )}
      {run && (
        <span class="hide-small">
          {run.pid ? `process ${run.pid}, ` : ""}run {run.run}, attempt {run.attempts}
        </span>
      )}
      {tool && (
        <span>
          a tool runs for <Age at={tool.since} />
        </span>
      )}
      {asked && (
        <a class="link" href={`/#ask-${asked.id}`}>
          {questionWords(asked)}
        </a>
      )}
      <button class="more btn quiet" type="button" aria-expanded={open} onClick={toggle}>
        How we know <kbd>W</kbd>
      </button>
      {open && <Why id={entry.view.id} />}
    </div>
  );
}

function Why({ id }: { id: string }) {
  const [why, setWhy] = useState<WhyView | Problem | null>(null);
  const entry = store.agent(id);
  useEffect(() => {
    api.why(id).then(setWhy, setWhy);
  }, [id, entry?.activity]);
  if (why === null) return null;
  if (why instanceof Error) return <p class="why small">{why.message}</p>;
  return (
    <ul class="why">
      {why.evidence.map((it) => (
        <li key={it.what}>
          <span>{it.what}</span>
          <span>{it.at > store.now() ? <At at={it.at} /> : <Age at={it.at} />}</span>
        </li>
      ))}
    </ul>
  );
}

/** What an agent says and does itself. What others say to it ends no text that it writes. */
const OWN_WORDS: ReadonlySet<string> = new Set(["assistant", "tool_call"]);

/** When everything else is drawn, too: then the browser lays the page out once for this frame, and not once for each view that changes. */
function scrollToEnd(): void {
  queueMicrotask(() => scrollTo(0, document.documentElement.scrollHeight));
}

interface ConversationProps {
  entry: AgentEntry;
  messages: Shown[];
  notes: { id: number; ts: number; words: string }[];
  loading: boolean;
  problem: Problem | null;
  hash: string;
}

function Conversation({ entry, messages, notes, loading, problem, hash }: ConversationProps) {
  const id = entry.view.id;
  const [all, setAll] = useState(false);
  const [shown, setShown] = useState(SHOWN);
  const end = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const [fresh, setFresh] = useState(0);
  const seen = useRef(0);

  const inherited = messages.filter((message) => message.agent !== id);
  const own = messages.filter((message) => message.agent === id);
  const lastId = own.at(-1)?.id ?? 0;
  const saidAt = own.findLast((message) => OWN_WORDS.has(message.kind))?.ts ?? 0;
  const writing = useWriting(entry.activity === "working" ? id : null, saidAt);

  useEffect(() => {
    const look = () => {
      const rest = document.documentElement.scrollHeight - innerHeight - scrollY;
      following.current = rest < NEAR;
      if (following.current) {
        seen.current = lastId;
        setFresh(0);
      }
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, [lastId]);
  useLayoutEffect(() => {
    if (loading) return;
    if (hash.startsWith("e")) {
      document.getElementById(hash)?.scrollIntoView({ block: "center" });
      return;
    }
    if (following.current) {
      scrollToEnd();
      seen.current = lastId;
    } else setFresh(own.filter((message) => message.id > seen.current).length);
  }, [lastId, loading, hash]);

  useLayoutEffect(() => {
    if (writing && following.current) scrollToEnd();
  }, [writing]);

  if (problem)
    return (
      <div class="empty">
        <h3>Its history cannot be read</h3>
        <p>
          {problem.message} {problem.hint}
        </p>
      </div>
    );
  if (loading && messages.length === 0) return <Loading />;
  const fromWhom = inherited.at(-1)?.agent;
  const kept = all ? inherited : inherited.slice(-2);
  const first = Math.max(0, Math.floor((own.length - shown) / LEAVE) * LEAVE);
  const visible = own.slice(first);
  return (
    <div class="talk" role="log" aria-label={`Conversation with ${nameOf(id)}`} aria-live="off">
      {fromWhom && (
        <>
          <div class="inherited">
            <div class="lab">
              <Icon name="fork" size={14} />
              <span class="cut">
                {messagesWord(inherited.length)} inherited from{" "}
                <a class="link" href={to.agent(fromWhom)}>
                  {nameOf(fromWhom)}
                </a>
                , up to #{group(inherited.at(-1)?.id ?? 0)}
              </span>
              {inherited.length > 2 && (
                <button class="btn quiet" type="button" aria-expanded={all} onClick={() => setAll(!all)}>
                  {all ? "Show the last two" : `Show all ${inherited.length}`}
                </button>
              )}
            </div>
            <Talk messages={kept} small />
          </div>
          <div class="cutline">
            <Icon name="fork" size={14} />
            <span>
              forked from {nameOf(fromWhom)} at <At at={entry.view.created} /> · from here on it is {nameOf(id)}’s own
            </span>
          </div>
        </>
      )}
      {first > 0 && (
        <button class="btn line earlier" type="button" onClick={() => setShown(shown + SHOWN * 2)}>
          Show earlier, {group(first)} {first === 1 ? "message" : "messages"}
        </button>
      )}
      {own.length === 0 && notes.length === 0 && (
        <div class="empty">
          <h3>Nothing was said yet</h3>
          <p>What you say to it and what it answers stands here.</p>
        </div>
      )}
      <Talk
        messages={visible}
        notes={notes.filter((note) => note.id >= (visible[0]?.id ?? 0))}
        first={first}
        agent={id}
      />
      {writing && <WritingNow agent={id} writing={writing} />}
      <div ref={end} />
      {fresh > 0 && (
        <button
          class="btn line jump"
          type="button"
          onClick={() => {
            following.current = true;
            scrollTo(0, document.documentElement.scrollHeight);
          }}
        >
          <Icon name="down" size={14} />
          {fresh} new
        </button>
      )}
    </div>
  );
}

function Composer({ entry }: { entry: AgentEntry }) {
  const id = entry.view.id;
  const name = nameOf(id);
  const [draft, setDraft] = useDraft(`say:${id}`);
  const [state, setState] = useState<{ sending: boolean; problem: Problem | null }>({ sending: false, problem: null });
  const dead = entry.view.state === "dead" || entry.view.state === "expired";
  /** What was sent and is not known to have arrived: the answer may be lost, but not the event. */
  const sent = useRef<string | null>(null);
  const arrived = () => {
    sent.current = null;
    setDraft("");
    setState({ sending: false, problem: null });
  };
  useEffect(
    () =>
      store.tap((event) => {
        if (event.type !== "message_added" || event.agent !== id || event.kind !== "user") return;
        if (event.content === sent.current) arrived();
      }),
    [id],
  );
  const send = async () => {
    if (draft.trim() === "" || state.sending || dead) return;
    setState({ sending: true, problem: null });
    sent.current = draft;
    try {
      await api.say(id, draft);
      arrived();
      scrollTo(0, document.documentElement.scrollHeight);
    } catch (it) {
      const problem = it as Problem;
      // A refusal is known not to have arrived.
      if (!problem.away) sent.current = null;
      if (problem.away && sent.current === null) return;
      setState({ sending: false, problem });
    }
  };
  const what: Record<string, string> = {
    starting: "Its process starts, and hears this first.",
    working: "It is in the middle of a turn, and hears this when the turn ends.",
    silent: "It is silent in the middle of a turn, and hears this when the turn ends.",
    listening: "It waits for a message.",
    stopping: "It is being stopped. Sending starts a new run.",
    parked: `It is parked, ${parkedUntil(entry)}, and hears this then.`,
    resting: "Nothing runs it. Sending starts a run that goes on in the same conversation.",
    dead: "It is dead. Its history can be forked.",
    expired: "It never hatched. Nothing can be said to it.",
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {state.problem && (
        <p class="refused" role="alert">
          <Glyph as="failed" word="refused" />
          <span>
            {state.problem.away
              ? "The daemon is away. Your words are still here, and can be sent when it is back."
              : state.problem.message}{" "}
            <span class="faint">{state.problem.away ? "" : state.problem.hint}</span>
          </span>
        </p>
      )}
      <div class="box">
        <label class="sr" for="say">
          Say something to {name}
        </label>
        <textarea
          id="say"
          rows={2}
          placeholder={dead ? "" : `Say something to ${name}`}
          disabled={dead}
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) void send();
          }}
        />
        <div class="bar">
          <span>{what[entry.activity]}</span>
          {(entry.activity === "working" || entry.activity === "silent") && (
            <button class="btn quiet hide-small" type="button" onClick={() => act(api.interrupt(id))}>
              Interrupt <kbd>⇧I</kbd>
            </button>
          )}
          <button class="btn you" type="submit" disabled={dead || state.sending || draft.trim() === ""}>
            {state.sending ? "Sending …" : "Send"} <kbd>{SEND}</kbd>
          </button>
        </div>
      </div>
    </form>
  );
}

function NoAgent({ problem }: { problem: Problem }) {
  return (
    <div class="empty">
      <h1>{problem.away ? "This agent cannot be read" : "There is no such agent"}</h1>
      <p>
        {problem.message} {problem.hint}
      </p>
      <div class="actions">
        <a class="btn line" href="/agents">
          All agents
        </a>
      </div>
    </div>
  );
}
