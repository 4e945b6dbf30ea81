// All quests: which goes on, which waits, which is over.
import { useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { QuestLine, Rescued, Restored } from "../api/types";
import { notify, openDialog } from "../app/dialogs";
import { to } from "../app/router";
import { store, useTopics } from "../store/store";
import { Glyph, type Standing } from "../ui/glyph";
import { questName } from "../ui/names";
import { isPlanned } from "../ui/steps";
import { Ago } from "../ui/time";
import { Count, count, money, plural } from "../ui/words";
import { Loading } from "./home";
import QuestView from "./quest";

export default function Quests({ parts }: { parts: string[] }) {
  const id = parts[1];
  return id ? <QuestView key={id} id={id} step={parts[2] ?? null} /> : <QuestTable />;
}

export function standingOfQuest(line: QuestLine): Standing {
  if (line.state === "complete") return "done";
  if (line.state === "abandoned") return "dead";
  if (line.questions > 0) return "you";
  if (line.state === "paused") return "parked";
  return line.failed > 0 && line.running === 0 ? "failed" : "working";
}

export function questWords(line: QuestLine): string {
  if (line.state === "complete") return `Complete, ${line.steps} ${plural(line.steps, "step")}`;
  if (line.state === "abandoned") return `Abandoned with ${line.complete} of ${line.steps} steps complete`;
  if (line.steps === 0) return line.state === "paused" ? "Paused before its plan" : "The plan is being made";
  const words = [
    isPlanned(store.quest(line.id))
      ? `${line.steps} ${plural(line.steps, "step")} planned`
      : `${line.complete} of ${line.steps} steps complete`,
  ];
  if (line.state === "paused") words.push("paused");
  if (line.running > 0) words.push(`${line.running} at work`);
  if (line.questions > 0) words.push(`${line.questions} ${line.questions === 1 ? "asks" : "ask"}`);
  if (line.failed > 0) words.push(`${line.failed} failed`);
  return words.join(" · ");
}

function QuestTable() {
  useTopics("quests");
  const [all, setAll] = useState(false);
  useEffect(() => {
    if (!all) return;
    api
      .quests()
      .then(({ quests }) => {
        for (const line of quests) if (!store.state?.quests.has(line.id)) store.state?.quests.set(line.id, line);
        store.touch("quests");
      })
      .catch(() => {});
  }, [all]);
  if (!store.state) return <Loading />;
  const lines = [...store.state.quests.values()].sort((a, b) => b.created - a.created);
  const open = lines.filter((line) => line.state === "open" || line.state === "paused");
  const over = lines.filter((line) => line.state === "complete" || line.state === "abandoned");
  const asking = open.filter((line) => line.questions > 0).length;
  const title =
    lines.length === 0
      ? "No quests yet"
      : open.length === 0
        ? "No quest is open"
        : `${Count(open.length)} ${plural(open.length, "quest is", "quests are")} open${asking > 0 ? `, ${count(asking)} ${asking === 1 ? "asks" : "ask"} you` : ""}`;
  return (
    <>
      <header class="head">
        <div>
          <h1>{title}</h1>
          <p class="sub">A quest is a wish that agents find out about, plan, carry out and review.</p>
        </div>
        <div class="actions right">
          <button class="btn line" type="button" onClick={() => openDialog("quest")}>
            New quest <kbd>N</kbd>
          </button>
        </div>
      </header>
      {lines.length === 0 && (
        <div class="empty">
          <h3>No quests yet</h3>
          <p>Say what you want to have, and agents find out the rest, plan it and do it.</p>
          <div class="actions">
            <button class="btn you" type="button" onClick={() => openDialog("quest")}>
              New quest
            </button>
          </div>
        </div>
      )}
      {[
        { name: "Open", lines: open },
        { name: "Over", lines: over },
      ].map(
        (group) =>
          group.lines.length > 0 && (
            <section class="quest-group" key={group.name} aria-label={group.name}>
              <div class="col-head">
                <h2>{group.name}</h2>
                <span class="n">{group.lines.length}</span>
              </div>
              {group.lines.map((line) => (
                <a
                  key={line.id}
                  class={`row${group.name === "Over" ? " is-done" : ""}`}
                  href={to.quest(line.id)}
                  data-quest={line.id}
                >
                  <Glyph as={standingOfQuest(line)} />
                  <div>
                    <div class="title">
                      <b title={line.request}>{line.request}</b>
                      <span class="where id">{line.id.slice(0, 6)}</span>
                    </div>
                    <div class="now cut whole-small">{questWords(line)}</div>
                    <div class="evidence-line">
                      <Ago at={line.changed} before="changed " />
                    </div>
                  </div>
                  <div class="aside num">{money(line.spent)}</div>
                </a>
              ))}
            </section>
          ),
      )}
      <Kept />
      {!all && store.state.quests.size >= 50 && (
        <button class="btn quiet" type="button" onClick={() => setAll(true)}>
          Show all
        </button>
      )}
    </>
  );
}

/** What closed worktrees held, with a way back. */
function Kept() {
  const [kept, setKept] = useState<Rescued[]>([]);
  const [back, setBack] = useState<Record<string, Restored>>({});
  useEffect(() => {
    api.rescued().then(
      ({ rescued }) => setKept(rescued),
      () => {},
    );
  }, []);
  if (kept.length === 0) return null;
  return (
    <section class="quest-group" id="kept" aria-label="Kept">
      <div class="col-head">
        <h2>Kept</h2>
        <span class="n">what closed worktrees held</span>
      </div>
      <ul class="kept-list">
        {kept.map((it) => {
          const restored = back[it.name];
          return (
            <li key={it.name}>
              <span>
                {it.step ?? "all of it"}, of “{questName(it.quest)}”{" "}
                <span class="faint small num">
                  · {it.files} {plural(it.files, "file")} · <Ago at={it.at} />
                </span>
                {restored && (
                  <span class="block small">
                    It is in <code>{restored.folder}</code>, on the branch <code>{restored.branch}</code>.
                  </span>
                )}
              </span>
              {!restored && (
                <button
                  class="btn line small-btn"
                  type="button"
                  onClick={() =>
                    api.restore(it.name).then(
                      (done) => setBack((now) => ({ ...now, [it.name]: done })),
                      (problem: Problem) => notify(problem),
                    )
                  }
                >
                  Bring it back
                </button>
              )}
            </li>
          );
        })}
      </ul>
      <p class="small faint">On a branch of its own. Your checkout is not touched.</p>
    </section>
  );
}
