// One step: through which stations it went, what each said, and what comes next.
import { useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { QuestDocument, StepDocument, WardRun } from "../api/types";
import { notify } from "../app/dialogs";
import { to } from "../app/router";
import { store } from "../store/store";
import { questionWords } from "./ask";
import { ChangedLines } from "./changed_lines";
import { Changes, changesOf } from "./changes";
import { Glyph, type Standing } from "./glyph";
import { dutyOf, titled } from "./roles";
import { signalWords } from "./signal_words";
import { Ago, At } from "./time";
import { allTokens, exact, firstLine, money, plain, plural, span, tokens } from "./words";

export interface Station {
  who: string;
  standing: Standing;
  said: string;
  at: number;
  /** The type of the event that says so. */
  type?: string;
  agent?: string;
  /** The number of a ward whose output can be read. */
  ward?: number;
  findings?: string[];
  took?: number | null;
  calls?: { role: string; reason: string };
}

function verdictWords(verdict: WardRun["verdict"]): { words: string; standing: Standing; findings: string[] } {
  if (!verdict) return { words: "runs", standing: "working", findings: [] };
  if (verdict === "green") return { words: "green", standing: "green", findings: [] };
  if ("red" in verdict) {
    const { findings } = verdict.red;
    return { words: `red, ${findings.length} ${plural(findings.length, "finding")}`, standing: "failed", findings };
  }
  if ("conflict" in verdict) {
    const { files } = verdict.conflict;
    return { words: "conflicts with other steps", standing: "failed", findings: files };
  }
  return { words: `could not be run: ${verdict.broken.why}`, standing: "failed", findings: [] };
}

/** The stations of a step: who worked on it, what the wards found, how it ended. */
export function stationsOf(step: StepDocument): Station[] {
  const stations: Station[] = [];
  for (const signal of step.signals ?? []) {
    const { words, standing, calls } = signalWords(signal.signal);
    stations.push({
      who: signal.role,
      standing,
      said: plain(firstLine(words)),
      at: signal.at,
      type: "signal_given",
      agent: signal.agent,
      ...(calls ? { calls } : {}),
    });
  }
  for (const ward of step.wards ?? []) {
    const { words, standing, findings } = verdictWords(ward.verdict);
    stations.push({
      who: "ward",
      standing,
      said: plain(firstLine(words)),
      at: ward.ended ?? ward.started,
      type: "ward_ended",
      ward: ward.number,
      findings,
      took: ward.ended ? ward.ended - ward.started : null,
    });
  }
  for (const note of step.history) {
    const { at } = note;
    if (note.kind === "merged")
      stations.push({
        who: "merge",
        standing: "done",
        said: "merged into the quest’s branch",
        at,
        type: "merge_ended",
      });
    else if (note.kind === "failed")
      stations.push({ who: "failed", standing: "failed", said: plain(firstLine(note.why)), at, type: "step_failed" });
  }
  stations.sort((a, b) => a.at - b.at);
  const working = step.agents.find((hand) => hand.agent === step.agent) ?? null;
  // The role that another one has called is shown inside the call.
  const called = step.status === "waiting_for_role" && stations.at(-1)?.calls !== undefined;
  if (
    working &&
    !called &&
    !(step.signals ?? []).some((signal) => signal.agent === working.agent && signal.at >= step.since)
  ) {
    stations.push({
      who: working.role,
      standing: step.status === "parked" ? "parked" : "working",
      said: step.status === "parked" ? "is parked" : "is at work",
      at: step.since,
      agent: working.agent,
    });
  }
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
    else if (!stations.some((it) => it.who === station && it.standing === "working")) left.push(titled(station));
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
        <span class="faint small num block sums">
          {spent && spent.cost.nanodollars > 0 && (
            <>
              <span>{money(spent.cost)}</span> <span>{tokens(allTokens(spent))} tokens</span>{" "}
            </>
          )}
          {step.attempts > 0 && (
            <ChangedLines
              base={`/api/quests/${quest.id}/steps/${step.id}`}
              stamp={step.since + stations.length}
              files
            />
          )}
        </span>
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
              {dutyOf(station.who) && <span class="faint">({dutyOf(station.who)}) </span>}
              <span class="said">{station.said}</span>
              {station.ward && (
                <WardOutput quest={quest.id} step={step.id} number={station.ward} red={station.standing === "failed"} />
              )}
            </div>
            {station.took != null && station.took >= 1000 ? (
              <time title={exact(station.at)}>{span(station.took)}</time>
            ) : (
              <At at={station.at} />
            )}
            {station.findings && station.findings.length > 0 && (
              <pre class="out wrap findings">{plain(station.findings.slice(0, 5).join("\n"))}</pre>
            )}
            {station.calls && (
              <div class="chain">
                <div>
                  <Glyph as="queued" silent />
                  <span>“{plain(firstLine(station.calls.reason))}”</span>
                </div>
                {step.status === "waiting_for_role" && at === stations.findLastIndex((it) => it.calls) && (
                  <>
                    <div>
                      <Glyph as="working" />
                      <span>
                        <b>{titled(station.calls.role)}</b> acts on it, <Ago at={step.since} before="for " after="" />
                      </span>
                    </div>
                    <div>
                      <Glyph as="pending" silent />
                      <span>then the {titled(callers.at(-1)?.role ?? station.who)} goes on</span>
                    </div>
                  </>
                )}
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
            Open conversation
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
