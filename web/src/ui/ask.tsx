// What needs the human, with the answer in place.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { About, PermissionView, QuestionView } from "../api/types";
import { useDraft } from "../app/drafts";
import { to, usePlace } from "../app/router";
import type { Need } from "../store/needs";
import { store, useTopics } from "../store/store";
import { Glyph } from "./glyph";
import { SEND } from "./key_names";
import { nameOf, questName, whereOf } from "./names";
import { isRed } from "./steps";
import { Age, Ago } from "./time";
import { capital, ceiling, firstLine, group, literal, money, plain, span } from "./words";

/** With a field, the words that are typed there follow `before` in the answer. */
interface Choice {
  words: string;
  answer?: string;
  /** The agent itself offers it. */
  offered?: boolean;
  danger?: boolean;
  field?: string;
  before?: string;
  href?: string;
}

/** How long an answer waits before it is sent again: the stream may be the last to notice that the daemon has gone. */
const AGAIN_MS = 500;
/** Questions that this tab answers or has answered. */
const mine = new Set<number>();
/** Whether this tab answers or has answered a question. */
export const isMine = (question: QuestionView) => mine.has(question.id);
/** How much of a tool's input is shown. The conversation has all of it. */
const SHOWN_INPUT = 2000;

function troubleOf(about: About): string {
  if (typeof about === "object" && "step" in about) return about.step.trouble;
  if (typeof about === "object" && "silence" in about) return "silence";
  if (typeof about === "object" && "permission" in about) return "permission";
  return "budget";
}

/** One and a half times as much, in whole dollars where there are some. */
function raised(nanos: number): number {
  const dollars = (nanos / 1e9) * 1.5;
  return dollars >= 2 ? Math.ceil(dollars) : Math.ceil(dollars * 100) / 100;
}

function budgetOf(question: QuestionView): { spent: number; limit: number } | null {
  const about = question.about;
  if (typeof about !== "object") return null;
  if ("quest_budget" in about) {
    const quest = store.quest(about.quest_budget.quest);
    return quest?.budget ? { spent: quest.spent.cost.nanodollars, limit: quest.budget.nanodollars } : null;
  }
  if ("budget" in about) {
    const whose = about.budget.of ?? null;
    const budget = store.state?.budgets.find((it) => (it.agent ?? null) === whose);
    return budget ? { spent: budget.spent.nanodollars, limit: budget.limit.nanodollars } : null;
  }
  return null;
}

interface Shape {
  words: string;
  context: string;
  choices: Choice[];
  /** It is answered in free words. */
  open: boolean;
  permission?: PermissionView;
}

/** The question in a sentence, what to know beside it, and the answers that it takes. */
function shape(question: QuestionView): Shape {
  const [first = "", ...rest] = plain(question.text).split(/\n\n+/);
  const context = question.context ? plain(question.context) : rest.join("\n\n");
  const conversation: Choice = { words: "Open conversation", href: to.agent(question.agent) };
  const quest = question.quest ?? null;
  switch (troubleOf(question.about)) {
    case "silence": {
      const entry = store.agent(question.agent);
      const stall = entry?.stallMs ?? 600_000;
      return {
        words: `Nothing was heard of it for ${span(stall)}.`,
        context: "",
        open: false,
        choices: [
          { words: `Wait ${span(stall)} more`, answer: "wait" },
          { words: "Stop it", answer: "stop", danger: true },
          { words: "Say something", field: "Say something to it" },
        ],
      };
    }
    case "permission": {
      const permission = question.permission;
      return {
        words: permission ? `May it use ${permission.tool}?` : first.replace(/ ?Answer .*$/s, ""),
        context: "",
        ...(permission ? { permission } : {}),
        open: false,
        choices: [
          { words: "Allow", answer: "allow" },
          { words: "Deny", answer: "deny", danger: true },
          { words: "Deny with a reason", field: "Why not? It is told to the agent", before: "deny: " },
          { words: "Always for this agent", answer: "always-agent" },
          { words: "Always in this project", answer: "always-project" },
          conversation,
        ],
      };
    }
    case "budget": {
      const budget = budgetOf(question);
      const next = budget ? raised(Math.max(budget.limit, budget.spent)) : null;
      const limit = budget ? ceiling({ nanodollars: budget.limit }) : "";
      const choices: Choice[] = [];
      if (next) choices.push({ words: `Raise to $${next}`, answer: String(next) });
      choices.push({ words: "Another amount", field: "An amount in dollars, such as 5 or 0.25" });
      choices.push({ words: "Give no more", answer: "stop" });
      const words = budget
        ? `The ceiling of ${limit} is used up: ${money({ nanodollars: budget.spent })}.`
        : firstLine(first.replace(/ ?Answer .*$/s, ""));
      return { words, context: "", open: false, choices };
    }
    case "approval":
      return {
        words: planWords(question) ?? first,
        context: "",
        open: false,
        choices: [
          { words: "Approve plan", answer: "yes" },
          ...(quest ? [{ words: "Read plan", href: to.quest(quest) }] : []),
          { words: "Ask for a change", field: "What shall be different?" },
        ],
      };
    case "ended":
    case "merge":
      return {
        words: first.replace(/ ?Answer .*$/s, ""),
        context,
        open: false,
        choices: [
          { words: "Try again", answer: "retry" },
          { words: "Say something", field: "Say something to it" },
          conversation,
        ],
      };
    case "ward":
      return {
        words: first.replace(/ ?Answer .*$/s, ""),
        context,
        open: false,
        choices: [
          { words: "Try again", answer: "retry" },
          { words: "Another ward", field: "ward: COMMAND" },
        ],
      };
    default: {
      const offered = offeredIn(question).map((choice) => ({ words: plain(choice), answer: choice, offered: true }));
      return { words: first, context, open: true, choices: [...offered, conversation] };
    }
  }
}

/** The answers that its agent offers. Of a question that came while the page watched, the signal is in the document of its quest. */
function offeredIn(question: QuestionView): string[] {
  const { about } = question;
  if (question.takes?.choices?.length) return question.takes.choices;
  if (typeof about !== "object" || !("step" in about) || about.step.trouble !== "input") return [];
  const signals = store.quest(about.step.quest)?.steps.flatMap((step) => step.signals ?? []) ?? [];
  const given = signals.findLast((it) => it.agent === question.agent)?.signal;
  return given && "needs-user-input" in given ? (given["needs-user-input"].choices ?? []) : [];
}

/** What a tool would do, where, and what the answers with "always" would allow: all of it, because somebody decides on it. */
function Permission({ permission }: { permission: PermissionView }) {
  const { access, folder, input, rule } = permission;
  const does =
    typeof access === "string"
      ? input
      : "execute" in access
        ? access.execute.command
        : "edit" in access
          ? `Change ${access.edit.path}`
          : `Read ${access.read.path}`;
  const shown = literal(does.length > SHOWN_INPUT ? `${does.slice(0, SHOWN_INPUT)} …` : does);
  return (
    <>
      <pre class="out wrap wanted" tabIndex={0}>
        {shown}
      </pre>
      {folder && (
        <p class="evidence-line">
          in <code>{literal(folder)}</code>
        </p>
      )}
      {rule && <p class="evidence-line rule">Always: {literal(rule)}</p>}
    </>
  );
}

function planWords(question: QuestionView): string | null {
  const quest = question.quest ? store.quest(question.quest) : null;
  const steps = quest?.steps.filter((step) => step.phase === "work").length ?? 0;
  if (!quest || steps === 0) return null;
  return steps === 1
    ? "1 step. Shall it be carried out?"
    : `${steps} steps, ${quest.slots} at a time. Shall they be carried out?`;
}

/** Whether it is a question that an agent put in its own words. */
export function takesWords(question: QuestionView): boolean {
  return shape(question).open;
}

/** The question in one sentence, for those who show it elsewhere. */
export function questionWords(question: QuestionView): string {
  return shape(question).words;
}

type Sent =
  | { state: "idle" }
  | { state: "sending" }
  | { state: "refused"; problem: Problem }
  /** The daemon is away. A question takes one answer, so sending it again when the daemon is back cannot answer twice. */
  | { state: "waiting"; answer: string };

export function Ask({ need, first }: { need: Need; first: boolean }) {
  return need.kind === "question" ? <Question question={need.question} first={first} /> : <FailedStep need={need} />;
}

function Question({ question, first }: { question: QuestionView; first: boolean }) {
  const { words, context, choices, open, permission } = shape(question);
  const [draft, setDraft] = useDraft(`ask:${question.id}`);
  const [field, setField] = useState<string | null>(open && (first || draft !== "") ? "Your answer" : null);
  const before = choices.find((choice) => choice.field === field)?.before ?? "";
  const [sent, setSent] = useState<Sent>({ state: "idle" });
  const box = useRef<HTMLTextAreaElement>(null);
  const asked = useRef(false);
  const entry = store.agent(question.agent);
  const name = nameOf(question.agent);
  const id = `ask-${question.id}`;

  useEffect(() => {
    if (open && first) setField((now) => now ?? "Your answer");
  }, [open, first]);
  const { hash } = usePlace();
  useEffect(() => {
    if (hash !== id) return;
    asked.current = true;
    setField((now) => now ?? choices.find((choice) => choice.field)?.field ?? "Your answer");
    document.querySelector(`[data-need="q${question.id}"]`)?.scrollIntoView({ block: "center" });
    box.current?.focus();
  }, [hash]);
  useEffect(() => {
    if (field && asked.current) box.current?.focus();
    asked.current = false;
  }, [field]);

  const send = async (answer: string) => {
    if (answer.trim() === "" || sent.state === "sending") return;
    setSent({ state: "sending" });
    mine.add(question.id);
    try {
      await api.answer(question.id, answer);
      // It is done when its event is seen: then this is not here any more.
      setDraft("");
    } catch (it) {
      const problem = it as Problem;
      if (!problem.away) mine.delete(question.id);
      setSent(problem.away ? { state: "waiting", answer } : { state: "refused", problem });
    }
  };
  useTopics("connection");
  const here = store.connection.live;
  useEffect(() => {
    if (sent.state !== "waiting" || !here) return;
    const timer = setTimeout(() => void send(sent.answer), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [sent.state, here]);
  const busy = sent.state === "sending" || sent.state === "waiting";
  const typed = () => (draft.trim() === "" ? "" : before + draft);
  const openField = (label: string) => {
    asked.current = true;
    setField(label);
    if (field) box.current?.focus();
  };
  const isOpen = field !== null;
  const tool = entry && [...entry.tools.values()][0];
  const where = [whereOf(question.agent), question.quest && questName(question.quest)].filter(Boolean).join(" · ");

  return (
    <article
      class={`ask${isOpen ? " is-open" : ""}`}
      aria-labelledby={id}
      data-need={`q${question.id}`}
      data-mover={question.agent}
      data-agent={question.agent}
    >
      <Glyph as="you" />
      <div>
        <header class="title">
          <a class="who cut" href={to.agent(question.agent)}>
            {name}
          </a>
          <span class="where cut">{where}</span>
          <Age at={question.asked} />
        </header>
        <p class="question" id={id}>
          {words}
        </p>
        {context && <p class="context">{context}</p>}
        {permission && <Permission permission={permission} />}
        {entry && troubleOf(question.about) === "silence" && (
          <p class="evidence-line">
            {entry.run?.pid ? `Process ${entry.run.pid} lives` : "No process"}
            {tool ? (
              <>
                {" "}
                · a tool has not answered: <code>{tool.target || tool.name}</code>
              </>
            ) : (
              <>
                {" "}
                · <Ago at={entry.lastSign} before="last sign " />
              </>
            )}
          </p>
        )}
        {isOpen && (
          <div class="answer">
            <label class="sr" for={`${id}-field`}>
              Your answer to {name}
            </label>
            <textarea
              ref={box}
              class="field"
              id={`${id}-field`}
              rows={2}
              placeholder={field === "Your answer" ? "" : (field ?? "")}
              value={draft}
              onInput={(event) => setDraft(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) void send(typed());
              }}
            />
          </div>
        )}
        {sent.state === "waiting" && (
          <p class="refused is-waiting" role="status">
            <Glyph as="parked" word="waits" />
            <span>
              The daemon is away. Your answer “{plain(firstLine(sent.answer)).slice(0, 80)}” will be sent when it is
              back.
            </span>
            <button class="btn quiet small-btn" type="button" onClick={() => setSent({ state: "idle" })}>
              Do not send it
            </button>
          </p>
        )}
        {sent.state === "refused" && (
          <p class="refused" role="alert">
            <Glyph as="failed" word="refused" />
            <span>
              {sent.problem.message} {sent.problem.hint && <span class="faint">{sent.problem.hint}</span>} Your words
              are still here.
            </span>
          </p>
        )}
        <div class="actions">
          {isOpen && (
            <button
              class="btn you"
              type="button"
              disabled={busy || draft.trim() === ""}
              onClick={() => void send(typed())}
            >
              {sent.state === "sending" ? "Sending …" : "Answer"} <kbd>{SEND}</kbd>
            </button>
          )}
          {!isOpen && open && (
            <button class="btn line" type="button" onClick={() => openField("Your answer")}>
              Answer
            </button>
          )}
          {choices.map((choice, at) => {
            const leads = choice.offered || (at === 0 && !isOpen && !open);
            const look = `btn ${leads ? "line" : "quiet"}${choice.danger ? " danger" : ""}${choice.offered ? " is-offered" : ""}`;
            if (choice.href)
              return (
                <a class={look} href={choice.href}>
                  {choice.words}
                </a>
              );
            if (choice.field && isOpen) return null;
            const act = () => (choice.answer ? void send(choice.answer) : openField(choice.field ?? ""));
            return (
              <button class={look} type="button" disabled={busy} onClick={act}>
                {choice.words}
              </button>
            );
          })}
        </div>
      </div>
    </article>
  );
}

function FailedStep({ need }: { need: Extract<Need, { kind: "failed" }> }) {
  const [sent, setSent] = useState<Sent>({ state: "idle" });
  const { step, quest } = need;
  const retry = async () => {
    setSent({ state: "sending" });
    try {
      await api.retry(quest, step.id);
    } catch (problem) {
      setSent({ state: "refused", problem: problem as Problem });
    }
  };
  const blocks =
    need.blocks === 0
      ? ""
      : need.blocks === 1
        ? " One step is blocked by it."
        : ` ${need.blocks} steps are blocked by it.`;
  const why = firstLine(step.doing ?? "It failed");
  return (
    <article class="ask" data-need={need.key} data-quest={quest} data-step={step.id} aria-label={`${step.id} failed`}>
      <Glyph as="failed" />
      <div>
        <header class="title">
          <a class="who cut" href={to.quest(quest, step.id)}>
            {step.id}
          </a>
          <span class="where cut">step · {need.request}</span>
          <Age at={step.since} />
        </header>
        <p class="question">
          {capital(why)}
          {/[.!?]$/.test(why) ? "" : "."}
          {blocks}
        </p>
        {sent.state === "refused" && (
          <p class="refused" role="alert">
            {sent.problem.message} <span class="faint">{sent.problem.hint}</span>
          </p>
        )}
        <div class="actions">
          <button class="btn line" type="button" disabled={sent.state === "sending"} onClick={() => void retry()}>
            {sent.state === "sending" ? "Sending …" : "Retry step"}
          </button>
          <a class="btn quiet" href={to.quest(quest, step.id)}>
            {isRed(step) ? "See what the ward said" : "See what happened"}
          </a>
        </div>
      </div>
    </article>
  );
}

interface AnsweredProps {
  question: QuestionView;
  answer: string;
  event: number;
  at: number;
}

/** An answer that was seen in the log. What somebody was typing here meanwhile is not lost. */
export function Answered(props: AnsweredProps) {
  const [draft, setDraft] = useDraft(`ask:${props.question.id}`);
  if (draft.trim() !== "" && !mine.has(props.question.id))
    return <AnsweredElsewhere {...props} draft={draft} leave={() => setDraft("")} />;
  return <AnsweredHere {...props} />;
}

function AnsweredHere({ question, answer, event }: AnsweredProps) {
  return (
    <article class="ask is-answered">
      <Glyph as="done" word="answered" />
      <div>
        <header class="title">
          <a class="who cut" href={to.agent(question.agent)}>
            {nameOf(question.agent)}
          </a>
          <time>now</time>
        </header>
        <p class="question muted">
          {mine.has(question.id) ? "You answered" : "Answered elsewhere"}: {plain(firstLine(answer))}
        </p>
        <p class="evidence-line">
          Event{" "}
          <a class="link" href={to.event(event)}>
            {group(event)}
          </a>{" "}
          · it goes on in the same conversation
        </p>
      </div>
    </article>
  );
}

/** Nobody needs an answer any more: its agent was stopped, or the step goes on. */
export function NoLonger({ need }: { need: Need }) {
  return (
    <article class="ask is-answered">
      <Glyph as="done" word="settled" />
      <div>
        <header class="title">
          {need.kind === "question" ? (
            <a class="who cut" href={to.agent(need.question.agent)}>
              {nameOf(need.question.agent)}
            </a>
          ) : (
            <a class="who cut" href={to.quest(need.quest, need.step.id)}>
              {need.step.id}
            </a>
          )}
          <time>now</time>
        </header>
        <p class="question muted">
          {need.kind === "question" ? "It needs no answer any more" : "It does not wait for you any more"}
        </p>
      </div>
    </article>
  );
}

function AnsweredElsewhere({
  question,
  answer,
  at,
  draft,
  leave,
}: AnsweredProps & { draft: string; leave: () => void }) {
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const say = async () => {
    setSending(true);
    setProblem(null);
    try {
      await api.say(question.agent, draft);
      leave();
    } catch (it) {
      setProblem(it as Problem);
      setSending(false);
    }
  };
  return (
    <article class="ask" aria-label={`Answered elsewhere, for ${nameOf(question.agent)}`}>
      <Glyph as="failed" word="refused" />
      <div>
        <header class="title">
          <a class="who cut" href={to.agent(question.agent)}>
            {nameOf(question.agent)}
          </a>
          <Ago at={at} />
        </header>
        <p class="question">This was answered elsewhere: “{plain(firstLine(answer))}”</p>
        <p class="context">Your words are still here: “{plain(firstLine(draft))}”</p>
        {problem && (
          <p class="refused" role="alert">
            {problem.message} <span class="faint">{problem.hint}</span>
          </p>
        )}
        <div class="actions">
          <button class="btn line" type="button" disabled={sending} onClick={() => void say()}>
            Say it to the agent instead
          </button>
          <button class="btn quiet" type="button" disabled={sending} onClick={leave}>
            Leave it
          </button>
        </div>
      </div>
    </article>
  );
}
