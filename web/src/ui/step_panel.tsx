// One step: through which stations it went, what each said, and what comes next.
import { useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { QuestDocument, StepDocument } from "../api/types";
import { notify } from "../app/dialogs";
import { to } from "../app/router";
import { store } from "../store/store";
import { questionWords } from "./ask";
import { Changes, changesOf } from "./changes";
import { Glyph, type Standing } from "./glyph";
import { nameOf } from "./names";
import { Ago } from "./time";
import { allTokens, clock, exact, firstLine, money, plain, plural, tokens } from "./words";

interface Station {
  who: string;
  standing: Standing;
  said: string;
  at: number;
  agent?: string;
  /** The number of a ward whose output can be read. */
  ward?: number;
  chain?: { reason: string; role: string; next: string };
}

/** The stations of a step, from what happened to it. */
export function stationsOf(step: StepDocument): Station[] {
  const stations: Station[] = [];
  let chores = 0;
  for (const { at, what } of step.history) {
    const begins = /^(\S+) (?:begins|goes on)(?: \(([\w-]{22})\))?$/.exec(what);
    const signals = /^(\S+) signals (\S+)$/.exec(what);
    const calls = /^(\S+) asks for (\S+)$/.exec(what);
    const last = stations.at(-1);
    if (begins) {
      stations.push({
        who: begins[1] ?? "",
        standing: "working",
        said: "is at work",
        at,
        ...(begins[2] ? { agent: begins[2] } : {}),
      });
    } else if (signals && last) {
      last.at = at;
      if (signals[2] === "complete") Object.assign(last, { standing: "done", said: "is done" });
      else if (signals[2] === "partially-complete")
        Object.assign(last, { standing: "done", said: "ran out of room, and handed on" });
      else if (signals[2] === "needs-user-input") Object.assign(last, { standing: "you", said: "asks you" });
      else Object.assign(last, { standing: "pending", said: "asked another role first" });
    } else if (calls && last) {
      last.chain = { reason: "", role: calls[2] ?? "", next: last.who };
    } else if (what.startsWith("the ward is") && what !== "the ward is next") {
      chores += 1;
      const verdict = what.slice("the ward is ".length);
      stations.push({
        who: "ward",
        standing: verdict.startsWith("green") ? "green" : "failed",
        said: verdict,
        at,
        ward: chores,
      });
    } else if (what === "the ward is next") {
      // It says so itself when it is done.
    } else if (what === "merged") {
      chores += 1;
      stations.push({ who: "merge", standing: "done", said: "merged into the quest’s branch", at });
    } else if (what.startsWith("failed")) {
      stations.push({ who: "failed", standing: "failed", said: plain(firstLine(what.replace(/^failed:? ?/, ""))), at });
    } else if (/crash|resum|retry|tried again|answer/.test(what)) {
      stations.push({ who: "", standing: "queued", said: plain(what), at });
    }
  }
  // Whoever was at work and is not any more has been followed by somebody.
  stations.forEach((station, at) => {
    if (station.standing === "working" && at < stations.length - 1 && station.agent !== step.agent)
      station.standing = "done";
  });
  const last = stations.filter((station) => station.agent).at(-1);
  if (last && step.summary && last.standing === "done") last.said = plain(firstLine(step.summary));
  return stations;
}

function toCome(quest: QuestDocument, step: StepDocument, stations: Station[]): string {
  if (step.status === "complete" || step.status === "failed") return "";
  const path = quest.table.paths[step.phase] ?? [];
  const passed = stations
    .filter((station) => station.standing === "done" || station.standing === "green")
    .map((station) => station.who);
  const left: string[] = [];
  for (const station of path) {
    if (station === "ward" && !quest.ward) continue;
    const at = passed.indexOf(station);
    if (at >= 0) passed.splice(at, 1);
    else if (!stations.some((it) => it.who === station && it.standing === "working")) left.push(station);
  }
  if (step.phase === "work" && quest.branch) left.push("merge");
  return left.length > 1 ? `${left.slice(0, -1).join(", ")}, then ${left.at(-1)}` : (left[0] ?? "");
}

export function StepPanel({ quest, step }: { quest: QuestDocument; step: StepDocument }) {
  const [changes, setChanges] = useState(false);
  const stations = stationsOf(step);
  const next = toCome(quest, step, stations);
  const spent = step.spent;
  const agent = step.agent ?? step.agents.at(-1)?.agent;
  const question = step.question != null ? store.state?.questions.get(step.question) : undefined;
  const callers = step.callers ?? [];
  return (
    <aside class="panel" aria-label={`The step ${step.id}`}>
      <div class="panel-head">
        <h2>{step.id}</h2>
        <Chip step={step} />
      </div>
      <p class="desc">
        {step.description || step.name}
        {spent && spent.cost.nanodollars > 0 && (
          <span class="faint small num block">
            {money(spent.cost)} · {tokens(allTokens(spent))} tokens
          </span>
        )}
      </p>
      {question && (
        <div class="call">
          <span>{questionWords(question)}</span>
          <a class="btn you" href={`/#ask-${question.id}`}>
            Answer
          </a>
        </div>
      )}
      <ol class="path">
        {stations.map((station, at) => (
          <li key={`${at}${station.who}`}>
            <Glyph as={station.standing} />
            <div>
              {station.agent ? (
                <a href={to.agent(station.agent)}>
                  <b>{station.who}</b>
                </a>
              ) : (
                <b>{station.who}</b>
              )}{" "}
              <span class="said">{station.said}</span>
              {station.ward && (
                <WardOutput quest={quest.id} step={step.id} number={station.ward} red={station.standing === "failed"} />
              )}
            </div>
            <time title={exact(station.at)}>{clock(station.at)}</time>
            {station.chain && step.status === "waiting_for_role" && at === stations.findLastIndex((it) => it.chain) && (
              <div class="chain">
                <div>
                  <Glyph as="working" />
                  <span>
                    <b>{station.chain.role}</b> acts on it, <Ago at={step.since} before="for " after="" />
                  </span>
                </div>
                <div>
                  <Glyph as="pending" silent />
                  <span>then the {callers.at(-1)?.role ?? station.chain.next} goes on</span>
                </div>
              </div>
            )}
          </li>
        ))}
        {next && (
          <li>
            <Glyph as="pending" word="to come" />
            <div class="to-come">{next}</div>
            <span />
          </li>
        )}
      </ol>
      <div class="actions">
        {step.status === "failed" && (
          <button
            class="btn line"
            type="button"
            onClick={() => api.retry(quest.id, step.id).catch((it: Problem) => notify(it))}
          >
            Retry step <kbd>R</kbd>
          </button>
        )}
        {agent && (
          <a class={`btn ${step.status === "failed" ? "quiet" : "line"}`} href={to.agent(agent)}>
            Open {nameOf(agent)}
          </a>
        )}
        {step.attempts > 0 && (
          <button class="btn quiet" type="button" aria-expanded={changes} onClick={() => setChanges(!changes)}>
            See the changes
          </button>
        )}
      </div>
      {changes && (
        <Changes load={changesOf(`/api/quests/${quest.id}/steps/${step.id}`)} empty="Nothing is changed yet." />
      )}
      {step.agents.length > 1 && (
        <p class="small faint hands">
          {step.agents.length} agents worked on it: {step.attempts} {plural(step.attempts, "attempt")}.
        </p>
      )}
    </aside>
  );
}

function Chip({ step }: { step: StepDocument }) {
  const words = step.status.replaceAll("_", " ");
  const look =
    step.question != null
      ? "is-you"
      : step.status === "failed"
        ? "is-failed"
        : step.status === "parked"
          ? "is-parked"
          : ["running", "waiting_for_role"].includes(step.status)
            ? "is-working"
            : "";
  return <span class={`chip ${look}`}>{words}</span>;
}

/** What a ward said, when somebody wants to know. A red one shows its end at once. */
function WardOutput({ quest, step, number, red }: { quest: string; step: string; number: number; red: boolean }) {
  const [output, setOutput] = useState<string | null>(null);
  const look = async () => {
    if (output !== null) return setOutput(null);
    try {
      setOutput((await api.wardOutput(quest, step, number)).text);
    } catch (problem) {
      setOutput((problem as Problem).message);
    }
  };
  return (
    <>
      {" "}
      <button
        class="link small faint plain-btn"
        type="button"
        aria-expanded={output !== null}
        onClick={() => void look()}
      >
        output
      </button>
      {output !== null && (
        <pre class={`out wrap${red ? " is-red" : ""}`} tabIndex={0}>
          {plain(output) || "It said nothing."}
        </pre>
      )}
    </>
  );
}
