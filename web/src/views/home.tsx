// Who needs me, and since when? Then who works, then what is done.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, drawId } from "../api/client";
import { notify, openDialog } from "../app/dialogs";
import { lastLook } from "../app/looks";
import { AskToNotify } from "../app/notices";
import { go, to } from "../app/router";
import { type Need, needs } from "../store/needs";
import type { AgentEntry, State } from "../store/state";
import { store, useTopics } from "../store/store";
import { ChangedLines } from "../ui/changed_lines";
import { Glyph, standingOf } from "../ui/glyph";
import { useMoves } from "../ui/moves";
import { nameOf, whereOf } from "../ui/names";
import { NeedsList } from "../ui/needs_list";
import { titled } from "../ui/roles";
import { signalWords } from "../ui/signal_words";
import { isRed } from "../ui/steps";
import { Ago } from "../ui/time";
import { Count, capital, ceiling, count, firstLine, money, plain, spanInWords, when } from "../ui/words";

/** How much of what is done is shown. */
const DONE_ROWS = 12;
/** Of what needs somebody it is enough to know that a hand is there. */
const NOTHING_HELD: Done[] = [];

interface Done {
  key: string;
  at: number;
  row: (isNew: boolean) => preact.JSX.Element;
}

export function Home() {
  useTopics("agents", "quests", "questions", "usage", "tick");
  return store.state ? <Columns state={store.state} /> : <Loading />;
}

function Columns({ state }: { state: State }) {
  const now = store.now();
  const waiting = needs(store);
  const asked = new Set([...state.questions.values()].map((question) => question.agent));
  const entries = [...state.agents.values()];
  const working = entries.filter(
    (it) => !asked.has(it.view.id) && ["starting", "working", "stopping"].includes(it.activity),
  );
  const parked = entries.filter((it) => !asked.has(it.view.id) && it.activity === "parked");
  const done = doneOf(entries, asked);
  const today = done.filter((it) => new Date(it.at).toDateString() === new Date(now).toDateString());
  const look = lastLook();
  const fresh = done.filter((it) => it.at > look);
  const hand = useHand(done);
  const asking = useHand(NOTHING_HELD);
  // What is new does not push the rows down while a hand or the focus is among them.
  const late = hand.held ? done.filter((it) => hand.held?.get(it.key) !== it.at).length : 0;
  const shown = done.filter((it) => !hand.held || hand.held.get(it.key) === it.at).slice(0, DONE_ROWS);
  useMoves(
    new Map([
      ...shown.map((it) => [it.key, "done"] as const),
      ...[...working, ...parked].map((it) => [it.view.id, "working"] as const),
      ...[...asked].map((it) => [it, "needs"] as const),
    ]),
  );
  const nothing = state.agentCount <= 1 && state.quests.size === 0;

  return (
    <>
      <header class="head with-today">
        <div>
          <h1>{sentence(waiting, working.length, nothing, now)}</h1>
          <p class="sub">{beneath(working.length, parked, fresh.length, look, now, waiting.length > 0)}</p>
        </div>
        <Today />
        <div class="actions right">
          <button class="btn line" type="button" onClick={() => openDialog("quest")}>
            New quest <kbd>N</kbd>
          </button>
        </div>
      </header>
      <AskToNotify waiting={waiting.length} />
      {nothing ? (
        <Nothing />
      ) : (
        <div class="cols">
          <section aria-labelledby="needs-you" {...asking.on}>
            <div class="col-head">
              <h2 id="needs-you">Needs you</h2>
              <span class="n">{waiting.length || ""}</span>
              {waiting.length > 1 && <span class="more hide-small">oldest first</span>}
            </div>
            <NeedsList state={state} held={asking.held !== null} />
            {waiting.length === 0 && <Quiet working={working.length} />}
          </section>
          <section aria-labelledby="working">
            <div class="col-head">
              <h2 id="working">Working</h2>
              <span class="n">
                {working.length}
                {parked.length > 0 && `, and ${parked.length} parked`}
              </span>
            </div>
            {[...working, ...parked].map((entry) => (
              <WorkingRow key={entry.view.id} id={entry.view.id} />
            ))}
            {working.length + parked.length === 0 && (
              <div class="empty">
                <h3>Nobody works</h3>
                <p>Agents appear here as soon as they begin.</p>
              </div>
            )}
          </section>
          <section aria-labelledby="done" {...hand.on}>
            <div class="col-head">
              <h2 id="done">Done</h2>
              <span class="n">{today.length > 0 ? `${today.length} today` : ""}</span>
              {late > 0 && (
                <button class="btn line" type="button" onClick={hand.release}>
                  {late} new
                </button>
              )}
              <a class="more link" href="/log">
                Earlier
              </a>
            </div>
            {shown.map((it) => it.row(it.at > look))}
            <Kept />
            {done.length === 0 && (
              <div class="empty">
                <h3>Nothing is done yet</h3>
                <p>What is finished rests here, with what it cost.</p>
              </div>
            )}
          </section>
        </div>
      )}
    </>
  );
}

/** What was done when a pointer or the focus came to that part of the page, as long as it is there. */
function useHand(done: Done[]) {
  const [held, setHeld] = useState<ReadonlyMap<string, number> | null>(null);
  const latest = useRef(done);
  latest.current = done;
  const take = () => new Map(latest.current.map((it) => [it.key, it.at]));
  const come = () => setHeld((now) => now ?? take());
  const leave = ({
    currentTarget,
    relatedTarget,
  }: {
    currentTarget: HTMLElement;
    relatedTarget: EventTarget | null;
  }) => {
    if (relatedTarget instanceof Node && currentTarget.contains(relatedTarget)) return;
    const focused = currentTarget.querySelector(":focus-visible");
    if (!focused && !currentTarget.matches(":hover")) setHeld(null);
  };
  return {
    held,
    on: { onPointerEnter: come, onPointerLeave: leave, onFocusIn: come, onFocusOut: leave },
    release: () => setHeld(take()),
  };
}

function sentence(waiting: Need[], working: number, nothing: boolean, now: number): string {
  if (nothing) return "Nothing has begun yet";
  const oldest = waiting[0];
  if (!oldest)
    return working > 0
      ? `${Count(working)} ${working === 1 ? "works" : "work"}, nothing waits for you`
      : "Nothing waits for you";
  const long = spanInWords(now - oldest.at);
  return waiting.length === 1
    ? `One waits for you, for ${long}`
    : `${Count(waiting.length)} wait for you, the oldest for ${long}`;
}

function beneath(
  working: number,
  parked: AgentEntry[],
  fresh: number,
  look: number,
  now: number,
  asked: boolean,
): string {
  const parts: string[] = [];
  if (asked && working > 0) parts.push(`${Count(working)} ${working === 1 ? "works" : "work"}`);
  const until = parked
    .map((it) => it.run?.until ?? 0)
    .filter(Boolean)
    .sort((a, b) => a - b)[0];
  if (parked.length > 0) {
    const words = `${parts.length ? count(parked.length) : Count(parked.length)} ${parked.length === 1 ? "is" : "are"} parked`;
    parts.push(until ? `${words} until ${when(until, store.now())}` : words);
  }
  const first = parts.length > 0 ? `${parts.join(", ")}. ` : "";
  if (fresh === 0 || look === 0) return `${first}Nothing is lost when you close this page.`;
  return `${first}${Count(fresh)} ${fresh === 1 ? "is" : "are"} done since you last looked, at ${when(look, now)}.`;
}

function Today() {
  const state = store.state;
  if (!state) return null;
  const budget = state.budgets.find((it) => !it.agent);
  const spent = money(state.today.cost);
  const share = budget
    ? Math.min(100, (state.today.cost.nanodollars / Math.max(1, budget.limit.nanodollars)) * 100)
    : 0;
  const words = budget ? `${spent} used today, of a ceiling of ${ceiling(budget.limit)}` : `${spent} used today`;
  return (
    <div class="today" role="img" aria-label={words}>
      <div class="line-of-two num">
        <span>
          <b>{spent}</b> <span class="faint">today</span>
        </span>
        <span class="faint">{budget ? `of ${ceiling(budget.limit)}` : ""}</span>
      </div>
      {budget && (
        <span class={`meter${share > 80 ? " is-high" : ""}`}>
          <i style={{ width: `${share}%` }} />
        </span>
      )}
    </div>
  );
}

function WorkingRow({ id }: { id: string }) {
  useTopics(`agent:${id}`);
  const entry = store.agent(id);
  if (!entry) return null;
  const parked = entry.activity === "parked";
  const tool = [...entry.tools.values()].at(-1);
  return (
    <a class="row" href={to.agent(id)} data-agent={id} data-mover={id}>
      <Glyph as={standingOf(entry.activity)} />
      <div>
        <div class="title">
          <b title={nameOf(id)}>{nameOf(id)}</b>
          <span class="where cut">{whereOf(id)}</span>
        </div>
        <div class="now cut">{parked ? causeWords(entry) : <DoingLine entry={entry} />}</div>
        <div class="evidence-line cut">
          {parked ? (
            parkedUntil(entry)
          ) : tool ? (
            <Ago
              at={tool.since}
              before="tool runs for "
              after=""
              staleAfter={entry.stallMs ? entry.stallMs / 10 : null}
            />
          ) : (
            <Ago
              at={entry.doing?.at ?? entry.lastSign}
              before={entry.doing ? "said this " : "last sign "}
              staleAfter={entry.stallMs ? entry.stallMs / 10 : null}
            />
          )}
          {!parked && wardWasRed(entry) && " · ward was red"}
        </div>
      </div>
      <div class="aside num">
        <div>{money(entry.spent.cost)}</div>
        <div>
          {entry.view.assignment && <StepLines assignment={entry.view.assignment} stamp={entry.view.messages} />}
        </div>
      </div>
    </a>
  );
}

function wardWasRed(entry: AgentEntry): boolean {
  const { assignment } = entry.view;
  const step = assignment && store.quest(assignment.quest)?.steps.find((it) => it.id === assignment.step);
  return step ? isRed(step) : false;
}

export function DoingLine({ entry }: { entry: AgentEntry }) {
  const { doing } = entry;
  if (!doing)
    return (
      <>
        {entry.activity === "starting"
          ? "Its process starts"
          : entry.activity === "stopping"
            ? "It is being stopped"
            : "At work"}
      </>
    );
  if (!doing.tool) return <>{doing.text}</>;
  return (
    <>
      {doing.tool} <code>{doing.text}</code>
    </>
  );
}

export function causeWords(entry: AgentEntry): string {
  const cause = entry.run?.cause;
  if (cause === "rate_limited") return "Rate limit of the service";
  if (cause === "overloaded") return "The service is overloaded";
  if (cause === "over_budget") return "Its money is used up";
  if (cause === "awaits_permission") return "It waits for a permission";
  if (cause === "out_of_credit") return "The account has no credit";
  if (cause === "crashed") return "It crashed, and gets a moment";
  return firstLine(entry.run?.detail ?? "Waits for a better moment");
}

export function parkedUntil(entry: AgentEntry): string {
  const until = entry.run?.until;
  return until ? `goes on by itself at ${when(until, store.now())}` : "goes on when you say so";
}

function StepLines({ assignment, stamp }: { assignment: { quest: string; step: string }; stamp: number }) {
  if (["requirements", "plan", "review"].includes(assignment.step)) return null;
  return <ChangedLines base={`/api/quests/${assignment.quest}/steps/${assignment.step}`} stamp={stamp} />;
}

function doneOf(entries: AgentEntry[], asked: Set<string>): Done[] {
  const found: Done[] = [];
  for (const line of store.state?.quests.values() ?? []) {
    if (line.state !== "complete" && line.state !== "abandoned") continue;
    const complete = line.state === "complete";
    found.push({
      key: line.id,
      at: line.changed,
      row: (isNew) => (
        <a key={line.id} class={`row is-done${isNew ? " is-new" : ""}`} href={to.quest(line.id)} data-quest={line.id}>
          <Glyph as={complete ? "done" : "dead"} />
          <div>
            <div class="title">
              <b title={line.request}>{line.request}</b>
            </div>
            <div class="now cut">
              {complete
                ? `Quest complete, ${line.steps} ${line.steps === 1 ? "step" : "steps"}, on its branch`
                : "Abandoned by you"}
            </div>
            <div class="evidence-line">
              <Ago at={line.changed} />
            </div>
          </div>
          <div class="aside num">
            <div>{money(line.spent)}</div>
            <div>
              <ChangedLines base={`/api/quests/${line.id}`} stamp={0} />
            </div>
          </div>
        </a>
      ),
    });
  }
  for (const entry of entries) {
    const run = entry.run;
    if (run?.phase !== "ended" || asked.has(entry.view.id) || entry.activity !== "resting") continue;
    const id = entry.view.id;
    const well = run.cause === "completed";
    found.push({
      key: id,
      at: run.lastOutput,
      row: (isNew) => (
        <a key={id} class={`row is-done${isNew ? " is-new" : ""}`} href={to.agent(id)} data-agent={id} data-mover={id}>
          <Glyph
            as={well ? "done" : run.cause === "user_ended" || run.cause === "killed" ? "resting" : "failed"}
            word={well ? "done" : "ended"}
          />
          <div>
            <div class="title">
              <b title={nameOf(id)}>{nameOf(id)}</b>
              <span class="where cut">{whereOf(id)}</span>
            </div>
            <div class="now cut">{doneWords(entry)}</div>
            <div class="evidence-line">
              <Ago at={run.lastOutput} />
            </div>
          </div>
          <div class="aside num">
            <div>{money(entry.spent.cost)}</div>
            <div>{entry.view.assignment && <StepLines assignment={entry.view.assignment} stamp={0} />}</div>
          </div>
        </a>
      ),
    });
  }
  return found.sort((a, b) => b.at - a.at);
}

/** The last thing that it said, else how it ended. */
function doneWords(entry: AgentEntry): string {
  const assignment = entry.view.assignment;
  const step = assignment ? store.quest(assignment.quest)?.steps.find((it) => it.id === assignment.step) : undefined;
  if (entry.run?.cause === "user_ended" || entry.run?.cause === "killed") return "Ended by you";
  const given = step?.signals?.findLast((it) => it.agent === entry.view.id);
  if (given) return capital(plain(firstLine(signalWords(given.signal).words)));
  if (entry.doing?.text) return plain(firstLine(entry.doing.text));
  if (entry.run?.cause === "completed") return assignment ? `${titled(assignment.role)} is done with its part` : "Done";
  return plain(firstLine(entry.run?.detail ?? "Done"));
}

/** What closed worktrees held: nothing is lost, and the page says so. */
function Kept() {
  const [kept, setKept] = useState(0);
  useEffect(() => {
    const look = () =>
      void api.rescued().then(
        ({ rescued }) => setKept(rescued.length),
        () => {},
      );
    look();
    return store.tap((event) => {
      if (event.type === "quest_abandoned" || event.type === "quest_completed" || event.type === "step_dropped") look();
    });
  }, []);
  if (kept === 0) return null;
  return (
    <p class="kept small faint">
      The work of {kept} closed {kept === 1 ? "worktree" : "worktrees"} was kept.{" "}
      <a class="link" href="/quests#kept">
        See it
      </a>
    </p>
  );
}

function Quiet({ working }: { working: number }) {
  const can = useMemo(() => typeof Notification !== "undefined" && Notification.permission === "default", []);
  return (
    <div class="empty">
      <h3>Nothing waits for you</h3>
      <p>
        {working > 0 ? `${Count(working)} ${working === 1 ? "agent works" : "agents work"}. ` : ""}This column fills
        when one of them asks.
      </p>
      {can && (
        <div class="actions">
          <button class="btn line" type="button" onClick={() => void Notification.requestPermission()}>
            Tell me in the browser when it does
          </button>
        </div>
      )}
    </div>
  );
}

/** A scripted agent needs no account and no model. It answers what is said to it, and changes nothing. */
async function tryOne(): Promise<void> {
  const id = drawId();
  await api.run({ id, name: "trial", prompt: "Are you there?", with: { harness: "scripted" } });
  go(to.agent(id));
}

function Nothing() {
  return (
    <>
      <div class="empty">
        <h3>No agents yet</h3>
        <p>Say what you want to have, and agents find out the rest, plan it and do it.</p>
        <div class="actions">
          <button class="btn you" type="button" onClick={() => openDialog("quest")}>
            New quest
          </button>
          <button class="btn quiet" type="button" onClick={() => openDialog("agent")}>
            New agent
          </button>
          <button class="btn quiet" type="button" onClick={() => void tryOne().catch(notify)}>
            Try one without an account
          </button>
        </div>
      </div>
      <p class="small faint">
        or in the terminal: <code>hatchery quest new --run "…"</code>
      </p>
    </>
  );
}

export function Loading() {
  return (
    <div class="skeleton" role="status" aria-busy="true" aria-label="Loading">
      <i />
      <i />
      <i />
    </div>
  );
}
