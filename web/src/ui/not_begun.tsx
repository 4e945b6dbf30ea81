// A quest that has not begun: what will check its work, whether that works, and the way to begin.
import { api, type Problem } from "../api/client";
import type { QuestDocument } from "../api/types";
import { notify } from "../app/dialogs";
import { beginAfterTrial, useTrial } from "../store/trials";
import { Glyph, type Standing } from "./glyph";
import { plain } from "./words";

/** How many problems of a ward are shown. */
const FINDINGS = 8;

/** Paused before its first agent was started. */
export const hasNotBegun = (quest: QuestDocument) =>
  quest.state === "paused" && quest.steps.every((step) => step.agents.length === 0);

export function NotBegun({ quest, setWard }: { quest: QuestDocument; setWard: () => void }) {
  const trial = useTrial(quest.id);
  const ward = quest.ward?.command ?? null;
  if (trial === undefined) return null;
  const begin = () => void api.resume(quest.id).catch((problem: Problem) => notify(problem));
  const tried = () => beginAfterTrial(quest.id);
  const change = { words: ward ? "Change the ward" : "Set a ward", act: setWard };
  const place = quest.branch ? "your last commit, in a worktree" : "the project";
  if (trial.state === "running")
    return (
      <Note as="working" title="The ward is being tried">
        <p>
          <code>{ward}</code> runs on {place}. The quest begins by itself when it is green, also if you leave this page.
        </p>
      </Note>
    );
  const over = trial.state === "over" && trial.tried.command === ward ? trial.tried : null;
  if (over?.verdict === "red" || over?.verdict === "broken") {
    const red = over.verdict === "red";
    return (
      <Note
        as="failed"
        title={red ? "The ward is red before any work" : "The ward is broken, so no step could be complete"}
        deeds={[...(red ? [{ words: "Begin anyway", act: begin }] : []), change, { words: "Try again", act: tried }]}
      >
        <p>
          <code>{ward}</code>: {plain(over.why ?? "")}.{" "}
          {red
            ? "Steps can only be complete when it is green. Begin if that is their task."
            : quest.branch
              ? "A worktree has only what git tracks; setup and copy in [worktrees] prepare it."
              : ""}
        </p>
        {over.findings.length > 0 && (
          <pre class="out wrap" tabIndex={0}>
            {over.findings.slice(0, FINDINGS).map(plain).join("\n")}
          </pre>
        )}
        {over.output && (
          <p class="faint small">
            All that it said is in <code>{over.output}</code>.
          </p>
        )}
      </Note>
    );
  }
  const lost = trial.state === "failed" ? `${trial.problem.message} ${trial.problem.hint}` : "";
  return (
    <Note
      as={lost ? "failed" : "pending"}
      title={lost ? "The ward could not be tried" : "This quest has not begun"}
      deeds={
        ward
          ? [{ words: "Try the ward and begin", act: tried }, { words: "Begin without a trial", act: begin }, change]
          : [{ words: "Begin", act: tried }, change]
      }
    >
      <p>
        {lost ? (
          lost
        ) : ward ? (
          <>
            First <code>{ward}</code>
            {quest.ward?.guessed_from ? `, guessed from ${quest.ward.guessed_from},` : ""} is tried on {place}: a ward
            that cannot work is known before an agent is paid.
          </>
        ) : (
          "It has no ward: nobody checks the work but its agents."
        )}
      </p>
    </Note>
  );
}

interface NoteProps {
  as: Standing;
  title: string;
  deeds?: { words: string; act: () => void }[];
  children: preact.ComponentChildren;
}

function Note({ as, title, deeds = [], children }: NoteProps) {
  return (
    <section class="not-begun" aria-labelledby="not-begun" role="status">
      <Glyph as={as} silent />
      <div>
        <h2 id="not-begun">{title}</h2>
        {children}
        {deeds.length > 0 && (
          <div class="actions">
            {deeds.map((deed, at) => (
              <button class={`btn ${at === 0 ? "you" : "quiet"}`} key={deed.words} type="button" onClick={deed.act}>
                {deed.words}
              </button>
            ))}
          </div>
        )}
      </div>
    </section>
  );
}
