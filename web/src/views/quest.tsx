// One quest: which step is stuck, and who is at work?
import { useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { QuestDocument, QuestionView, StepDocument } from "../api/types";
import { confirm, notify, prompt } from "../app/dialogs";
import { useActions } from "../app/keys";
import { go, to } from "../app/router";
import { happened, useSignalEvents } from "../store/signal_events";
import { store, useAttempt, useTopics } from "../store/store";
import { beginAfterTrial } from "../store/trials";
import { questionWords } from "../ui/ask";
import { Changes, changesOf } from "../ui/changes";
import { Glyph, type Standing, standingOfStep } from "../ui/glyph";
import { hasNotBegun, NotBegun } from "../ui/not_begun";
import { titled, withDuty } from "../ui/roles";
import { StepGraph } from "../ui/step_graph";
import { type Station, StepPanel, stationsOf } from "../ui/step_panel";
import { Ago } from "../ui/time";
import { ceiling, exact, firstLine, group, money, plain, plural, when, whenToTheSecond } from "../ui/words";
import { Loading } from "./home";

export default function QuestView({ id, step }: { id: string; step: string | null }) {
  useTopics(`quest:${id}`, "questions");
  const [changes, setChanges] = useState(false);
  const quest = store.quest(id);
  const problem = store.questProblem(id);
  const attempt = useAttempt(problem !== null);
  useEffect(() => store.askQuest(id), [id, attempt]);
  const held = quest !== null && hasNotBegun(quest);
  const named = quest?.steps.find((it) => it.id === step);
  const chosen = named ?? (quest && !held ? worthLooking(quest) : undefined);

  const act = (deed: Promise<unknown>) => {
    deed.catch((it: Problem) => notify(it));
  };
  const over = quest?.state === "complete" || quest?.state === "abandoned";
  const open = quest && !over ? quest : null;
  const pause = () => {
    if (!open) return;
    if (held) beginAfterTrial(open.id);
    else act(open.state === "paused" ? api.resume(open.id) : api.pause(open.id));
  };
  const ward = () => open && askWard(open);
  const budget = () => open && askBudget(open);
  const abandon = () => open && askAbandon(open);
  const first = open ? oldest(asking(open)) : undefined;
  useActions([
    first && { key: "A", words: `Answer ${first.step.id}`, act: () => go(answerOf(first.question)) },
    open && { key: "P", words: `${pauseWord(open)} quest`, act: pause },
    open &&
      chosen?.status === "failed" && {
        key: "R",
        words: `Retry step ${chosen.id}`,
        act: () => act(api.retry(open.id, chosen.id)),
      },
    quest && { key: "D", words: changes ? "See the steps" : "See the changes", act: () => setChanges((now) => !now) },
    quest && { key: "L", words: "See its events in the log", act: () => go(`/log?quest=${quest.id}`) },
    open && { words: "Set the ward of this quest", act: ward },
    open && { words: "Set the budget of this quest", act: budget },
    open && { words: "Abandon quest", act: abandon },
  ]);
  if (!quest) {
    if (problem) return <Missing problem={problem} />;
    return <Loading />;
  }
  const work = quest.steps.filter((it) => it.phase === "work");
  const complete = work.filter((it) => it.status === "complete").length;

  return (
    <>
      <header class="head">
        <div>
          <div class="crumb">
            <a href="/quests">Quests</a>
            <span>/</span>
            <span class="id">{quest.id.slice(0, 12)}</span>
          </div>
          <h1 title={plain(quest.request)}>{plain(firstLine(quest.request))}</h1>
          <p class="sub num">
            {work.length > 0 && `${complete} of ${work.length} steps complete · `}
            {held ? "not begun · " : quest.state !== "open" && `${quest.state} · `}
            since {when(quest.created, store.now())} · {money(quest.spent.cost)}
            {quest.budget && ` of ${ceiling(quest.budget)}`}
            {quest.ward ? (
              <>
                {" "}
                · ward <code>{quest.ward.command}</code>
              </>
            ) : (
              " · no ward"
            )}
            {quest.branch && (
              <>
                {" "}
                · on the branch <code title={quest.branch}>{quest.branch.slice(0, 16)}…</code>
              </>
            )}
          </p>
        </div>
        <div class="actions right">
          <button class="btn quiet" type="button" onClick={() => setChanges(!changes)} aria-pressed={changes}>
            Changes <kbd>D</kbd>
          </button>
          {!over && (
            <>
              <button class="btn quiet hide-small" type="button" onClick={ward}>
                Ward
              </button>
              <button class="btn quiet hide-small" type="button" onClick={budget}>
                Budget
              </button>
              <button class="btn quiet danger hide-small" type="button" onClick={abandon}>
                Abandon
              </button>
              <button class="btn line" type="button" onClick={pause}>
                {pauseWord(quest)} <kbd>P</kbd>
              </button>
            </>
          )}
        </div>
      </header>
      <Phases quest={quest} />
      {quest.state === "open" && <Slots quest={quest} />}
      {changes ? (
        <Changes
          key={quest.id}
          load={changesOf(`/api/quests/${quest.id}`)}
          empty="Nothing of this quest is merged yet."
        />
      ) : (
        <div class="quest-cols">
          <div>
            <Calls quest={quest} />
            {held && <NotBegun quest={quest} setWard={ward} />}
            {held && work.length === 0 ? null : work.length === 0 ? (
              <NoPlan quest={quest} />
            ) : (
              <StepGraph quest={quest} chosen={chosen?.id ?? null} />
            )}
          </div>
          {chosen && <StepPanel key={chosen.id} quest={quest} step={chosen} />}
          <Signals quest={quest} />
        </div>
      )}
    </>
  );
}

function pauseWord(quest: QuestDocument): string {
  if (hasNotBegun(quest)) return "Begin";
  return quest.state === "paused" ? "Resume" : "Pause";
}

function askWard(quest: QuestDocument): void {
  prompt({
    title: "The ward of this quest",
    words: "The command that says whether the work is good. Leave it empty for none.",
    label: "Command",
    value: quest.ward?.command ?? "",
    button: "Set ward",
    act: (text) => api.setWard(quest.id, text.trim() === "" ? null : text),
  });
}

function askBudget(quest: QuestDocument): void {
  prompt({
    title: "The ceiling of this quest",
    words: "What its agents may use in all, in dollars. Leave it empty for none.",
    label: "Dollars",
    value: quest.budget ? String(quest.budget.nanodollars / 1e9) : "",
    button: "Set ceiling",
    act: (text) => api.setQuestBudget(quest.id, text.trim() === "" ? null : text.replace("$", "")),
  });
}

function askAbandon(quest: QuestDocument): void {
  confirm({
    title: "Abandon this quest?",
    words:
      "Its agents are stopped, and no step is begun any more. What is done stays on its branch, and the log keeps all of it.",
    keep: "Keep it",
    choices: [{ words: "Abandon quest", act: () => api.abandon(quest.id) }],
  });
}

/** The step that a person would look at first. */
function worthLooking(quest: QuestDocument): StepDocument | undefined {
  const order: StepDocument["status"][] = [
    "waiting_for_human",
    "failed",
    "waiting_for_role",
    "running",
    "parked",
    "queued",
  ];
  for (const status of order) {
    const found = quest.steps.find((step) => step.status === status);
    if (found) return found;
  }
  return quest.steps.filter((step) => step.status === "complete").at(-1) ?? quest.steps[0];
}

const PHASES = [
  ["requirements", "Requirements"],
  ["plan", "Plan"],
  ["work", "Work"],
  ["review", "Review"],
] as const;

/** A preset such as `quick` leaves phases out. An agent may have worked on one all the same. */
function hasPhase(quest: QuestDocument, phase: string): boolean {
  const path = quest.table.paths[phase as "plan"] ?? [];
  return phase === "work" || path.length > 0 || quest.steps.some((step) => step.phase === phase && step.attempts > 0);
}

function Phases({ quest }: { quest: QuestDocument }) {
  return (
    <ol class="phases" aria-label="Phases">
      {PHASES.filter(([phase]) => hasPhase(quest, phase)).map(([phase, name]) => {
        const steps = quest.steps.filter((step) => step.phase === phase);
        const complete = steps.filter((step) => step.status === "complete").length;
        const done = steps.length > 0 && complete === steps.length;
        const on =
          !done && !hasNotBegun(quest) && steps.some((step) => step.status !== "pending" && step.status !== "blocked");
        const standing: Standing = done
          ? "done"
          : !on
            ? "pending"
            : steps.some((step) => ["running", "waiting_for_role"].includes(step.status))
              ? "working"
              : standingOfStep(steps.find((step) => step.status !== "complete")?.status ?? "pending");
        return (
          <li
            key={phase}
            class={`phase${done ? " is-done" : on ? " is-on" : ""}`}
            style={{ "--p": `${steps.length ? (complete / steps.length) * 100 : 0}%` }}
          >
            <b>
              <Glyph as={standing} />
              {name}
            </b>
            <span>{phaseWords(quest, phase, steps, done)}</span>
          </li>
        );
      })}
    </ol>
  );
}

function phaseWords(quest: QuestDocument, phase: string, steps: StepDocument[], done: boolean): string {
  const role = quest.table.paths[phase as "plan"]?.[0] ?? "";
  if (phase === "requirements") {
    const n = quest.requirements?.observables.length ?? 0;
    return done
      ? n > 0
        ? `${n} ${plural(n, "observable")} · ${titled(role)}`
        : "given from the start"
      : withDuty(steps[0]?.doing ?? role);
  }
  if (phase === "plan") {
    const n = quest.steps.filter((step) => step.phase === "work").length;
    return n > 0
      ? `${done ? "" : "waits · "}${n} ${plural(n, "step")} · ${titled(role)}`
      : withDuty(steps[0]?.doing ?? role);
  }
  if (phase === "review")
    return done
      ? (steps[0]?.summary ?? "done")
      : steps[0]?.status === "pending"
        ? `${titled(role)}, after all steps`
        : withDuty(steps[0]?.doing ?? role);
  const of = (...status: string[]) => steps.filter((step) => status.includes(step.status)).length;
  const words = [
    [of("running", "waiting_for_role"), "at work"],
    [of("waiting_for_human"), of("waiting_for_human") === 1 ? "asks" : "ask"],
    [of("parked"), "parked"],
    [of("failed"), "failed"],
  ]
    .filter(([n]) => n)
    .map(([n, word]) => `${n} ${word}`);
  if (words.length > 0) return words.join(", ");
  return done
    ? `${steps.length} ${plural(steps.length, "step")}`
    : steps.length > 0
      ? `${steps.length} ${plural(steps.length, "step")} to do`
      : "after the plan";
}

function Slots({ quest }: { quest: QuestDocument }) {
  const running = quest.steps.filter(
    (step) => step.status === "running" || (step.status === "waiting_for_role" && step.agent),
  );
  if (running.length === 0) return null;
  return (
    <div class="slots" role="group" aria-label="Slots">
      <span class="muted">
        {running.length} of {quest.slots} slots
      </span>
      {running.map((step, at) => (
        <a class="slot" key={step.id} href={to.quest(quest.id, step.id)}>
          <span class="box" aria-hidden="true">
            {at + 1}
          </span>
          {slotWords(step.doing ?? "")} on {step.id}
        </a>
      ))}
    </div>
  );
}

/** Who has the slot: a role without what it waits for, or the ward. */
function slotWords(doing: string): string {
  return doing.startsWith("the ") ? doing : withDuty(doing.split(",")[0] ?? "");
}

type Call = { step: StepDocument; question: QuestionView };

/** The steps that ask, with what they ask. */
function asking(quest: QuestDocument): Call[] {
  return quest.steps.flatMap((step) => {
    const question = step.question != null ? store.state?.questions.get(step.question) : undefined;
    return question ? [{ step, question }] : [];
  });
}

/** The one that the key answers. */
const oldest = (calls: Call[]): Call | undefined => calls.toSorted((a, b) => a.question.asked - b.question.asked)[0];

const answerOf = (question: QuestionView) => `/#ask-${question.id}`;

function Calls({ quest }: { quest: QuestDocument }) {
  const calls = asking(quest);
  if (calls.length === 0) return null;
  const first = oldest(calls)?.step.id;
  return (
    <div class="calls" role="group" aria-label="Waits for you">
      {calls.map(({ step, question }) => (
        <div class="call" key={step.id}>
          <Glyph as="you" />
          <b>{step.id}</b>
          <span class="cut" title={questionWords(question)}>
            {questionWords(question)}
          </span>
          <a class="btn you" href={answerOf(question)}>
            Answer {step.id === first && <kbd>A</kbd>}
          </a>
        </div>
      ))}
    </div>
  );
}

function NoPlan({ quest }: { quest: QuestDocument }) {
  const at = quest.steps.find((step) => step.status === "running");
  const role = at?.doing?.split(/[ ,]/)[0];
  return (
    <div class="empty">
      <h3>{quest.state === "paused" ? "It is paused" : "The plan is being made"}</h3>
      <p>
        {at && role ? (
          <>
            {titled(role)} reads the project, <Ago at={at.since} before="for " after="" />. The steps appear here when
            it has them.
          </>
        ) : (
          "The steps appear here when they are found."
        )}
      </p>
    </div>
  );
}

/** What agents and wards said of the steps, the newest first. */
function Signals({ quest }: { quest: QuestDocument }) {
  const events = useSignalEvents(quest.id);
  const lines = quest.steps
    .flatMap((step) =>
      stationsOf(step).map((station) => ({
        step,
        station,
        event: events.get(happened(station.type ?? "", step.id, station.at)),
      })),
    )
    .filter(({ station }) => station.standing !== "working")
    // A clock may be set back; the numbers of events never go back.
    .sort((a, b) => (a.event && b.event ? a.event - b.event : a.station.at - b.station.at))
    .slice(-12)
    .reverse();
  if (lines.length === 0) return null;
  return (
    <section class="section" aria-label="Signals">
      <div class="section-head">
        <h2>Signals</h2>
        <span class="faint small">as they come</span>
        <a class="end link small faint" href={`/log?quest=${quest.id}`}>
          All in the log
        </a>
      </div>
      <ul class="feed">
        {lines.map(({ step, station, event }) => (
          <li key={`${step.id}${station.at}${station.who}${station.ward ?? ""}`}>
            <time dateTime={new Date(station.at).toISOString()} title={exact(station.at)}>
              {whenToTheSecond(station.at, store.now())}
            </time>
            <a class="cut" href={to.quest(quest.id, step.id)}>
              <b>{step.id}</b>
            </a>
            <span class="cut" title={station.said}>
              {sentenceOf(station)}
            </span>
            {event !== undefined && (
              <a class="id" href={to.event(event)} title={`Event ${event} in the log`}>
                #{group(event)}
              </a>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Who said what: a role's summary stands after "is done". */
function sentenceOf({ who, said, standing, calls, agent }: Station): string {
  if (calls) return `${titled(who)} needs the ${titled(calls.role)} first: ${plain(firstLine(calls.reason))}`;
  if (who === "failed") return said;
  if (!agent) return who === "merge" ? said : `${who} ${said}`;
  return standing === "done" && said !== "is done" && !said.startsWith("ran out of room")
    ? `${titled(who)} is done: ${said}`
    : `${titled(who)} ${said}`;
}

function Missing({ problem }: { problem: Problem }) {
  return (
    <div class="empty">
      <h1>{problem.status === 404 ? "There is no such quest" : "This quest cannot be read"}</h1>
      <p>
        {problem.message} {problem.hint}
      </p>
      <div class="actions">
        <a class="btn line" href="/quests">
          All quests
        </a>
      </div>
    </div>
  );
}
