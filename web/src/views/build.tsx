// Build: which chunk, does it hold?
import { useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import { type Fields, number, object, objects, pendingQuestion, text, time, useStatus } from "../api/live_status";
import { notify } from "../app/dialogs";
import { to } from "../app/router";
import { store, useTopics } from "../store/store";
import { questionWords } from "../ui/ask";
import { Glyph, type Standing } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { questName } from "../ui/names";
import { ResumeBuild, rests } from "../ui/resume_build";
import { Age, Ago } from "../ui/time";
import { count, plain, plural, when } from "../ui/words";
import { Loading } from "./home";

/** How many events are shown, and how many when somebody asks for more. The log has all of them. */
const SHOWN = 20;
const SHOWN_MORE = 100;

type Show = "all" | "checks" | "context" | "chunks";
const KINDS: Record<Exclude<Show, "all">, string[]> = {
  checks: ["chunk-verified", "verification-failed"],
  context: ["context-checkpointed", "context-boundary", "context-compacted"],
  chunks: ["chunk-started", "chunk-completed", "chunk-failed", "chunk-retrying"],
};

export default function Build() {
  useTopics("connection");
  const status = useStatus();
  // A stream that is not open yet is not broken.
  const away = store.connection.brokenSince !== null;
  const [show, setShow] = useState<Show>("all");
  const [others, setOthers] = useState<boolean | null>(null);
  const [more, setMore] = useState(false);
  if (!status) return away ? <Away /> : <Loading />;
  const { state, ideas } = status;
  const run = object(state.buildRun);
  const chunks = objects(run.chunks);
  const events = objects(state.buildEvents)
    .reverse()
    .filter((it) => show === "all" || KINDS[show].includes(text(it.kind) ?? ""));
  // The title speaks of one build, so what happened in others is folded.
  const own = events.filter((it) => !isOfOther(it, run));
  const all = others ?? own.length === 0;
  const wanted = all ? events : own;
  return (
    <>
      <header class="head">
        <div>
          <Crumbs state={state} />
          <h1>{title(run, chunks)}</h1>
          <Subtitle state={state} />
        </div>
        <div class="actions right">
          {rests(run) && <ResumeBuild run={run} />}
          {text(run.questId) && (
            <a class="btn line" href={`/quests/${encodeURIComponent(text(run.questId) ?? "")}`}>
              See the quest
            </a>
          )}
        </div>
      </header>
      {chunks.length > 0 && (
        <ol class="chunks" aria-label="Chunks">
          {chunks.map((chunk, at) => (
            <Chunk chunk={chunk} number={at + 1} key={text(chunk.id) ?? at} />
          ))}
        </ol>
      )}
      <div class="build">
        <section aria-label="Feed">
          <div class="sect-h">
            <h2>What happened</h2>
            <div class="seg end" role="group" aria-label="Show">
              {(["all", "checks", "context", "chunks"] as const).map((it) => (
                <button type="button" key={it} aria-pressed={show === it} onClick={() => setShow(it)}>
                  {it.charAt(0).toUpperCase() + it.slice(1)}
                </button>
              ))}
            </div>
          </div>
          {wanted.length === 0 && <p class="muted">Nothing yet. Checks, checkpoints and ends of chunks stand here.</p>}
          {wanted.slice(0, more ? SHOWN_MORE : SHOWN).map((event, at) => (
            <Row event={event} of={isOfOther(event, run) ? text(event.questId) : null} key={text(event.id) ?? at} />
          ))}
          <p class="other-builds">
            {!more && wanted.length > SHOWN && (
              <button class="btn quiet" type="button" onClick={() => setMore(true)}>
                Show {Math.min(wanted.length, SHOWN_MORE) - SHOWN} more
              </button>
            )}
            {own.length < events.length && (
              <button class="btn quiet" type="button" aria-pressed={all} onClick={() => setOthers(!all)}>
                {all ? "Only this build" : `Show ${events.length - own.length} of other builds`}
              </button>
            )}
          </p>
        </section>
        <aside class="rail">
          <Ideas ideas={ideas} />
          <Readiness summary={object(state.readinessSummary)} />
          <Scenarios score={object(state.scenarioScore)} />
          <Context health={object(state.contextHealth)} />
          <Untracked changes={objects(state.untrackedChanges)} />
        </aside>
      </div>
    </>
  );
}

function isOfOther(event: Fields, run: Fields): boolean {
  const [its, ours] = [text(event.questId), text(run.questId)];
  return its !== null && ours !== null && its !== ours;
}

/** The browser opens the stream again by itself. */
function Away() {
  return (
    <div class="empty">
      <h1>The build cannot be read</h1>
      <p>The daemon is away. What the build does comes by itself when the daemon is back.</p>
    </div>
  );
}

function title(run: Fields, chunks: Fields[]): string {
  if (chunks.length === 0) return text(run.runId) ? "The build is being planned" : "No build goes on";
  const has = (word: string) => chunks.filter((it) => it.status === word).length;
  const busy = chunks.findIndex((it) => it.status === "active" || it.status === "retrying");
  const failed = has("failed");
  const where =
    busy >= 0
      ? `Chunk ${busy + 1} of ${chunks.length}`
      : `${has("completed")} of ${chunks.length} ${plural(chunks.length, "chunk")} done`;
  // A question pauses the run, too; the line below tells it.
  const paused = run.status === "paused" && !pendingQuestion(run) ? ", paused" : "";
  return `${where}${paused}${failed > 0 ? `, ${count(failed)} ${failed === 1 ? "has" : "have"} failed` : ""}`;
}

/** Where the build is and what comes next. What it asks is answered on Home, so the command line's way to answer is left out. */
function Subtitle({ state }: { state: Fields }) {
  useTopics("questions");
  const section = text(state.activeSection);
  const number = text(state.activeSectionNumber);
  const next = text(state.nextStep);
  const run = object(state.buildRun);
  const pending = pendingQuestion(run);
  const question = pending
    ? [...(store.state?.questions.values() ?? [])].find((it) => it.quest === text(run.questId))
    : undefined;
  const where = section && `In section ${number ? `${number}, ` : ""}${section}.`;
  return (
    <p class="sub">
      {where}{" "}
      {question ? (
        <>
          It asks: {questionWords(question)}{" "}
          <a class="link" href={`/#ask-${question.id}`}>
            Answer
          </a>
        </>
      ) : (
        <>
          {pending && `It asks: ${plain(pending)} `}
          {next && `Next: ${next.replace(/\.$/, "")}.`}
        </>
      )}
      {!where && !pending && !next && "A build goes through its chunks, and says of each whether it holds."}
    </p>
  );
}

function Crumbs({ state }: { state: Fields }) {
  const spec = text(state.specVersion);
  const words = [spec && `Spec ${spec}`, text(state.currentCommand), text(state.workflowStep)].filter(Boolean);
  return words.length === 0 ? null : <div class="crumb">{words.join(" · ")}</div>;
}

function Chunk({ chunk, number: place }: { chunk: Fields; number: number }) {
  const looks: Record<string, string> = { completed: "is-done", active: "is-on", retrying: "is-on", failed: "is-bad" };
  const status = text(chunk.status) ?? "planned";
  const at = time(chunk.completedAt) ?? time(chunk.failedAt);
  const attempt = number(chunk.attempt);
  const needs = Array.isArray(chunk.dependsOn) ? chunk.dependsOn.map(text).filter(Boolean) : [];
  const words =
    status === "completed"
      ? `done${at ? ` ${when(at, store.now())}` : ""}`
      : status === "failed"
        ? `failed${at ? ` ${when(at, store.now())}` : ""}`
        : status === "active" || status === "retrying"
          ? `attempt ${attempt ?? 1}`
          : needs.length > 0
            ? `after ${needs.join(", ")}`
            : "planned";
  return (
    <li class={`chunk ${looks[status] ?? ""}`}>
      <b class="cut-2">
        <span class="faint num">{place}</span> {text(chunk.name) ?? `Chunk ${place}`}
      </b>
      {words}
    </li>
  );
}

const MARKS: Record<string, Standing> = {
  "chunk-verified": "green",
  "verification-failed": "failed",
  "chunk-failed": "failed",
  "chunk-completed": "done",
  "chunk-started": "working",
  "chunk-retrying": "working",
};

/** What happened, as the beginning of a sentence. */
function nameOf(event: Fields, kind: string, checks: Fields[]): string {
  const chunk = text(event.chunk);
  const passed = checks.filter((it) => it.result === "pass").length;
  const attempt = number(event.attempt);
  const words: Record<string, string> = {
    "context-checkpointed": "Checkpoint",
    "context-boundary": "Context boundary",
    "context-compacted": "Context compacted",
  };
  if (words[kind]) return words[kind];
  const what = kind.replaceAll("-", " ");
  if (!chunk) return what.charAt(0).toUpperCase() + what.slice(1);
  if (checks.length > 0) return `${chunk}: ${passed} of ${checks.length} ${plural(checks.length, "check")}`;
  if (kind === "chunk-failed")
    return `${chunk}: failed${attempt ? ` after ${attempt} ${plural(attempt, "attempt")}` : ""}`;
  if (kind === "chunk-completed") return `${chunk}: done`;
  return attempt && attempt > 1 ? `${chunk}, attempt ${attempt}` : chunk;
}

function Row({ event, of }: { event: Fields; of: string | null }) {
  const kind = text(event.kind) ?? "event";
  const at = time(event.timestamp);
  const checks = objects(event.checks);
  const mark = MARKS[kind];
  return (
    <div class="ev-row">
      <time dateTime={text(event.timestamp) ?? undefined}>{at ? when(at, store.now()) : ""}</time>
      {mark ? <Glyph as={mark} word={kind.replaceAll("-", " ")} /> : <Icon name="layers" size={15} />}
      <div>
        <b>{nameOf(event, kind, checks)}</b> <span class="muted">{text(event.summary)}</span>
        {of && (
          <span class="faint small">
            {" "}
            in{" "}
            <a class="link" href={to.quest(of)}>
              {questName(of)}
            </a>
          </span>
        )}
        {checks.length > 0 && (
          <ul class="checks">
            {checks.map((check, place) => (
              <li key={`${text(check.name)}-${place}`}>
                <Glyph as={check.result === "pass" ? "done" : "failed"} word={text(check.result) ?? "unknown"} />
                {text(check.name)}
                {check.retried === true && <span class="faint"> on retry</span>}
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

/** A pending idea needs no word: it waits. */
const IDEA_WORDS: Record<string, string> = {
  processing: " · is being read",
  processed: " · was read",
  incorporated: " · is in the spec",
  error: " · could not be read",
};

function Ideas({ ideas }: { ideas: Fields[] }) {
  const [words, setWords] = useState("");
  const waiting = ideas.filter((it) => it.status === "pending").length;
  const failed = (problem: Problem) => notify(problem);
  return (
    <section>
      <div class="box-h">
        <h2>Ideas</h2>
        <span class="end">{waiting} waiting</span>
      </div>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const content = words.trim();
          if (content) api.addIdea(content).then(() => setWords(""), failed);
        }}
      >
        <label class="sr" for="idea">
          An idea, a link or a feature
        </label>
        <input
          class="field"
          id="idea"
          value={words}
          placeholder="An idea, a link or a feature"
          onInput={(event) => setWords(event.currentTarget.value)}
        />
      </form>
      <ul>
        {ideas.map((idea) => {
          const id = text(idea.id) ?? "";
          const at = time(idea.timestamp);
          const content = text(idea.content) ?? "";
          return (
            <li class="idea" key={id}>
              <div>
                <div>{content}</div>
                <div class="small">
                  {text(idea.type)}
                  {at && (
                    <>
                      {" · "}
                      <Age at={at} />
                    </>
                  )}
                  {IDEA_WORDS[text(idea.status) ?? ""]}
                </div>
              </div>
              <button
                class="icon-btn"
                type="button"
                aria-label={`Dismiss “${content}”`}
                onClick={() => api.dismissIdea(id).catch(failed)}
              >
                <Icon name="close" size={14} />
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** How a section stands, in the order and the colours of the bar. */
const LOOKS: [RegExp, string][] = [
  [/aligned|ready|satisfied|deferred/, "is-done"],
  [/ahead|behind|diverged|needs|review/, "is-parked"],
];

function Readiness({ summary }: { summary: Fields }) {
  const counts = Object.entries(summary)
    .map(([name, value]) => ({ name, count: number(value) ?? 0 }))
    .filter((it) => it.count > 0)
    .map((it) => ({ ...it, look: LOOKS.find(([fits]) => fits.test(it.name))?.[1] ?? "" }));
  const all = counts.reduce((sum, it) => sum + it.count, 0);
  if (all === 0) return null;
  return (
    <section>
      <div class="box-h">
        <h2>Readiness</h2>
        <span class="end">
          {all} {plural(all, "section")}
        </span>
      </div>
      <div class="stack" role="img" aria-label={counts.map((it) => `${it.count} ${it.name}`).join(", ")}>
        {counts.map(({ name, count: many, look }) => (
          <i key={name} class={look} style={{ flex: many }} />
        ))}
      </div>
      <ul class="legend is-list">
        {counts.map(({ name, count: many, look }) => (
          <li key={name}>
            <i class={`swatch ${look}`} />
            {name.replaceAll("-", " ")}
            <span class="num">{many}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** How many parts a bar may have before it becomes one. */
const PARTS = 24;

function Scenarios({ score }: { score: Fields }) {
  const total = number(score.total);
  if (!total || total < 1) return null;
  const satisfied = Math.min(total, Math.max(0, number(score.satisfied) ?? 0));
  const parts = total <= PARTS ? Array.from({ length: total }, (_, at) => [1, at < satisfied] as const) : [];
  return (
    <section>
      <div class="box-h">
        <h2>Scenarios</h2>
        <span class="end">
          {satisfied} of {total} hold
        </span>
      </div>
      <div class="stack" role="img" aria-label={`${satisfied} of ${total} scenarios hold`}>
        {parts.length > 0 ? (
          parts.map(([, holds], at) => <i key={String(at)} class={holds ? "is-done" : ""} style={{ flex: 1 }} />)
        ) : (
          <>
            <i class="is-done" style={{ flex: satisfied }} />
            <i style={{ flex: total - satisfied }} />
          </>
        )}
      </div>
    </section>
  );
}

function Context({ health }: { health: Fields }) {
  const usage = number(health.usage);
  const checkpoint = time(health.lastCheckpoint);
  const isolation = text(health.isolationMode);
  if (usage === null && !checkpoint && !isolation) return null;
  return (
    <section>
      <div class="box-h">
        <h2>Context</h2>
      </div>
      <dl class="health">
        {usage !== null && (
          <>
            <dt>Fullness</dt>
            <dd>
              {usage} %
              <span class="meter" aria-hidden="true">
                <i style={{ width: `${Math.min(100, Math.max(0, usage))}%` }} />
              </span>
            </dd>
          </>
        )}
        {isolation && (
          <>
            <dt>Isolation</dt>
            <dd>{isolation}</dd>
          </>
        )}
        {checkpoint && (
          <>
            <dt>Checkpoint</dt>
            <dd>
              <Ago at={checkpoint} />
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Untracked({ changes }: { changes: Fields[] }) {
  if (changes.length === 0) return null;
  return (
    <section>
      <div class="box-h">
        <h2>Not tracked</h2>
        <span class="end">
          {changes.length} {plural(changes.length, "file")}
        </span>
      </div>
      {changes.slice(0, 20).map((change) => (
        <p class="small muted" key={text(change.file)}>
          <code>{text(change.file)}</code> was changed outside a command
          {text(change.section) && `; it belongs to ${text(change.section)}`}.
        </p>
      ))}
    </section>
  );
}
