// Agents: where did they part, and which is better?
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, get } from "../api/client";
import type { ChangeSet } from "../api/types";
import { forkDialog, openDialog } from "../app/dialogs";
import { useActions } from "../app/keys";
import { go, to, usePlace } from "../app/router";
import { useHistory } from "../store/history";
import { store, useTopics } from "../store/store";
import { treeOf } from "../store/tree";
import { Changes, changesOf, Lines } from "../ui/changes";
import { Glyph, standingOf } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { besides, nameOf, questName } from "../ui/names";
import { messagesWord, Talk } from "../ui/talk";
import { Ago } from "../ui/time";
import { Count, count, group, list, money, plural, when } from "../ui/words";
import { AgentPage, askKill } from "./agent";
import { Loading } from "./home";

/** How many agents are drawn before somebody asks for more. */
const ROWS = 300;
const ROW = 52;
const LANE = 20;
/** Lanes beyond these are drawn on the last of them, so that there is room for the names. */
const LANES = 12;
const laneX = (lane: number) => Math.min(lane, LANES - 1) * LANE + 16;

export default function Agents({ parts }: { parts: string[] }) {
  const id = parts[1];
  return id ? <AgentPage key={id} id={id} /> : <Tree />;
}

function Tree() {
  useTopics("agents", "quests", "usage");
  const { query } = usePlace();
  const [all, setAll] = useState(false);
  const [rows, setRows] = useState(ROWS);
  const state = store.state;
  useEffect(() => {
    if (!all) return;
    api
      .agents()
      .then(({ agents }) => {
        for (const view of agents) store.meet(view);
      })
      .catch(() => {});
  }, [all]);
  const [a, b] = [query.get("a"), query.get("b")];
  useActions([a && { key: "F", words: `Fork ${nameOf(a)}`, act: () => forkDialog(a, nameOf(a), null) }]);
  const views = [...(state?.agents.values() ?? [])].map((entry) => entry.view);
  const shape = views.map((view) => `${view.id}${view.state}${view.parent}${view.assignment ? 1 : 0}`).join();
  const tree = useMemo(() => {
    const quests = new Map<string, { created: number; agents: number }>();
    for (const line of state?.quests.values() ?? []) {
      quests.set(line.id, {
        created: line.created,
        agents: views.filter((view) => view.assignment?.quest === line.id).length,
      });
    }
    const recent = views.filter((view) => !view.assignment).sort((x, y) => y.created - x.created);
    const root = views.filter((view) => !view.parent);
    return treeOf([...new Set([...recent.slice(0, rows), ...root])], quests);
  }, [shape, state?.quests.size, rows]);
  if (!state) return <Loading />;
  const own = views.filter((view) => view.parent && !view.assignment).length;
  const drawn = tree.rows.filter((row) => row.node.kind === "agent" && row.node.view.parent).length;
  const unknown = state.agentCount - views.length;
  const lanes = Math.min(tree.lanes, LANES);
  const quests = state.quests.size;
  const choose = (id: string) => {
    const next = a === id ? { a: b, b: null } : b === id ? { a, b: null } : !a ? { a: id, b } : { a, b: id };
    const params = new URLSearchParams();
    if (next.a) params.set("a", next.a);
    if (next.b) params.set("b", next.b);
    go(`/agents${params.size > 0 ? `?${params}` : ""}`, "replace");
  };
  const title =
    own === 0 && quests === 0
      ? "No agents yet"
      : unknown > 0
        ? `${group(state.agentCount)} agents, ${group(own)} of them recent`
        : `${Count(own)} ${plural(own, "agent")} on ${own === 1 ? "its" : "their"} own${quests > 0 ? `, and ${count(quests)} ${plural(quests, "quest")}` : ""}`;
  return (
    <>
      <header class="head">
        <div>
          <h1>{title}</h1>
          <p class="sub">The newest on top. Choose two to compare what they did since they parted.</p>
        </div>
        <div class="actions right">
          <div class="seg">
            <button type="button" aria-pressed={!all} onClick={() => setAll(false)}>
              Recent
            </button>
            <button type="button" aria-pressed={all} onClick={() => setAll(true)}>
              All {group(state.agentCount)}
            </button>
          </div>
          {a && (
            <button class="btn line" type="button" onClick={() => forkDialog(a, nameOf(a), null)}>
              <Icon name="fork" size={14} />
              Fork {nameOf(a)} <kbd>F</kbd>
            </button>
          )}
          <button class="btn line" type="button" onClick={() => openDialog("agent")}>
            New agent
          </button>
        </div>
      </header>
      <div class={`tree-cols${a ? " has-compare" : ""}`}>
        <section aria-label="Tree">
          <div class="git" style={{ "--lanes": `${lanes * LANE + 24}px` }}>
            <svg width={lanes * LANE + 16} height={tree.rows.length * ROW} aria-hidden="true">
              {tree.edges.map((edge) => {
                const [x1, y1, x2, y2] = [
                  laneX(edge.fromLane),
                  edge.from * ROW + ROW / 2,
                  laneX(edge.toLane),
                  edge.to * ROW + ROW / 2,
                ];
                const bend = y2 - ROW * 0.9;
                const d =
                  x1 === x2
                    ? `M${x1} ${y1}V${y2}`
                    : `M${x1} ${y1}V${bend}C${x1} ${bend + ROW * 0.65} ${x2} ${bend + ROW * 0.35} ${x2} ${y2}`;
                const chosen = edge.child === a || edge.child === b;
                return (
                  <path key={edge.child} class={`${edge.dead ? "is-dead" : ""}${chosen ? " is-chosen" : ""}`} d={d} />
                );
              })}
              {tree.rows.map(({ node, lane }, at) => {
                const [x, y] = [laneX(lane), at * ROW + ROW / 2];
                if (node.kind === "point")
                  return (
                    <rect
                      key={node.id}
                      class="point"
                      x={x - 4.5}
                      y={y - 4.5}
                      width="9"
                      height="9"
                      transform={`rotate(45 ${x} ${y})`}
                    />
                  );
                if (node.kind === "quest") return <circle key={node.id} class="quest-dot" cx={x} cy={y} r="4" />;
                const entry = store.agent(node.id);
                return (
                  <g key={node.id}>
                    <circle class="under" cx={x} cy={y} r="10" />
                    <Glyph as={glyphOf(node.id, entry?.activity ?? "resting")} silent x={x - 8} y={y - 8} />
                  </g>
                );
              })}
            </svg>
            <ul>
              {tree.rows.map(({ node }) => {
                if (node.kind === "agent")
                  return (
                    <AgentRow
                      key={node.id}
                      id={node.id}
                      mark={node.id === a ? "A" : node.id === b ? "B" : null}
                      choose={() => choose(node.id)}
                    />
                  );
                if (node.kind === "point")
                  return (
                    <li key={node.id} class="is-point">
                      <div>
                        <div class="title id">#{group(node.at)} · fork point</div>
                        <div class="evidence-line cut">
                          {list(node.children.map(nameOf))} {node.children.length === 1 ? "begins" : "begin"} here
                        </div>
                      </div>
                    </li>
                  );
                const line = state.quests.get(node.id);
                return (
                  <li key={node.id} class="is-quest">
                    <a href={to.quest(node.id)}>
                      <div class="title">
                        <span class="cut">{questName(node.id)}</span>
                      </div>
                      <div class="evidence-line cut">
                        quest · {node.agents} {plural(node.agents, "agent")}, folded
                      </div>
                    </a>
                    <div class="aside num">
                      {money(line?.spent)}
                      <br />
                      <span class="faint">{line && <Ago at={line.changed} after="" />}</span>
                    </div>
                  </li>
                );
              })}
            </ul>
          </div>
          {drawn < own && (
            <button class="btn line" type="button" onClick={() => setRows(rows + ROWS)}>
              Show earlier, {group(own - drawn)} {plural(own - drawn, "agent")}
            </button>
          )}
          <p class="small faint under-tree" style={{ "--lanes": `${lanes * LANE + 24}px` }}>
            Killing an agent moves its children up to its parent. Nothing is deleted.
          </p>
        </section>
        {a && b ? <Compare a={a} b={b} /> : <Hint a={a} />}
      </div>
    </>
  );
}

function glyphOf(id: string, activity: Parameters<typeof standingOf>[0]) {
  const asked = [...(store.state?.questions.values() ?? [])].some((question) => question.agent === id);
  const entry = store.agent(id);
  if (asked) return "you" as const;
  return activity === "resting" && entry?.run?.cause === "completed" ? ("done" as const) : standingOf(activity);
}

function AgentRow({ id, mark, choose }: { id: string; mark: "A" | "B" | null; choose: () => void }) {
  useTopics(`agent:${id}`);
  const entry = store.agent(id);
  if (!entry) return null;
  const dead = entry.view.state === "dead" || entry.view.state === "expired";
  const also = besides(id);
  return (
    <li class={`${mark ? "is-marked" : ""}${dead ? " is-dead" : ""}`} data-agent={id}>
      <button
        class="pick"
        type="button"
        aria-pressed={mark !== null}
        aria-label={`Compare ${nameOf(id)}`}
        onClick={choose}
      />
      <div>
        <div class="title">
          <a href={to.agent(id)}>
            <b class="cut">{nameOf(id)}</b>
          </a>
          {also && <span class="where">{also}</span>}
          {mark && (
            <span class="ab" aria-hidden="true">
              {mark}
            </span>
          )}
        </div>
        <div class="evidence-line cut">{lineOf(id)}</div>
      </div>
      <div class="aside num">
        {money(entry.spent.cost)}
        <br />
        <span class="faint">{group(entry.view.messages)} own</span>
      </div>
    </li>
  );
}

function lineOf(id: string): string {
  const entry = store.agent(id);
  if (!entry) return "";
  if (!entry.view.parent) return "Agent 0. Everybody descends from it.";
  if (entry.view.state === "dead") return "Killed. Its history stays.";
  const { doing, activity } = entry;
  const words = doing && (doing.tool ? `${doing.tool} ${doing.text}` : doing.text);
  if (words) return activity === "resting" ? `Rests: ${words}` : words;
  return `${activity.charAt(0).toUpperCase()}${activity.slice(1)}`;
}

function Hint({ a }: { a: string | null }) {
  return (
    <section class="hide-small" aria-label="Comparison">
      <div class="empty">
        <h3>{a ? "Choose a second one" : "Compare two"}</h3>
        <p>
          {a
            ? `${nameOf(a)} is A. Choose another agent, and what both did since they parted stands side by side.`
            : "Choose two agents by clicking beside their names. What they inherited together is folded; what each did on its own stands side by side."}
        </p>
      </div>
    </section>
  );
}

function Compare({ a, b }: { a: string; b: string }) {
  useTopics(`agent:${a}`, `agent:${b}`);
  const [show, setShow] = useState<"talk" | "changes">("talk");
  const [side, setSide] = useState<"A" | "B">("A");
  const [left, right] = [useHistory(a), useHistory(b)];
  const ids = new Set(right.messages.map((message) => message.id));
  const shared = left.messages.filter((message) => ids.has(message.id));
  const sharedIds = new Set(shared.map((message) => message.id));
  const parted = shared.at(-1);
  const columns = [
    { id: a, letter: "A" as const, history: left },
    { id: b, letter: "B" as const, history: right },
  ];
  const problem = left.problem ?? right.problem;
  // Without both histories nothing is known of what they have in common.
  if (problem || [left, right].some((it) => it.loading && it.messages.length === 0))
    return (
      <section aria-label="Comparison">
        <div class="section-head">
          <h2>Compare</h2>
        </div>
        {problem ? (
          <div class="empty">
            <h3>They cannot be compared now</h3>
            <p>
              {problem.message} {problem.hint}
            </p>
          </div>
        ) : (
          <Loading />
        )}
      </section>
    );
  return (
    <section aria-label="Comparison">
      <div class="section-head">
        <h2>Compare</h2>
        <span class="faint small">
          {parted ? (
            <>
              since they parted at{" "}
              <a class="link id" href={to.event(parted.id)}>
                #{group(parted.id)}
              </a>
            </>
          ) : (
            "they have nothing in common"
          )}
        </span>
        <div class="seg end">
          <button type="button" aria-pressed={show === "talk"} onClick={() => setShow("talk")}>
            Conversation
          </button>
          <button type="button" aria-pressed={show === "changes"} onClick={() => setShow("changes")}>
            Changes
          </button>
        </div>
      </div>
      <div class="seg only-small">
        {columns.map(({ id, letter }) => (
          <button key={letter} type="button" aria-pressed={side === letter} onClick={() => setSide(letter)}>
            <span class="ab">{letter}</span>
            {nameOf(id)}
          </button>
        ))}
      </div>
      <div class={`compare shows-${side}`}>
        {columns.map(({ id, letter }) => (
          <Head key={letter} id={id} letter={letter} />
        ))}
        {show === "talk" && shared.length > 0 && (
          <details class="inherited shared">
            <summary class="lab">
              <Icon name="right" size={12} />
              <span>
                {messagesWord(shared.length)} that both know{parted ? ` from ${nameOf(parted.agent)}` : ""}
              </span>
            </summary>
            <Talk messages={shared} small />
          </details>
        )}
        {columns.map(({ id, letter, history }) => (
          <section key={letter} class={`side-${letter}`} aria-label={nameOf(id)}>
            {show === "changes" ? (
              <Changes key={id} load={changesOf(`/api/agents/${id}`)} empty="It has changed nothing." />
            ) : (
              <Talk messages={history.messages.filter((message) => !sharedIds.has(message.id))} small />
            )}
            <div class="actions">
              <a class="btn line" href={to.agent(id)}>
                Open {letter}
              </a>
              <KillButton id={id} letter={letter} />
            </div>
          </section>
        ))}
      </div>
    </section>
  );
}

function KillButton({ id, letter }: { id: string; letter: "A" | "B" }) {
  const entry = store.agent(id);
  // Agent 0 has no parent, and everybody descends from it.
  if (!entry?.view.parent || entry.view.state === "dead" || entry.view.state === "expired") return null;
  return (
    <button class="btn quiet danger" type="button" onClick={() => void askKill(entry)}>
      Kill {letter}
    </button>
  );
}

function Head({ id, letter }: { id: string; letter: "A" | "B" }) {
  const entry = store.agent(id);
  const [changes, setChanges] = useState<ChangeSet | null>(null);
  useEffect(() => {
    get<ChangeSet>(`/api/agents/${id}/changes`).then(setChanges, () => setChanges(null));
  }, [id]);
  if (!entry) return <div class={`compare-head side-${letter}`} />;
  return (
    <div class={`compare-head side-${letter}`}>
      <div class="title">
        <span class="ab">{letter}</span>
        <b class="cut">{nameOf(id)}</b>
      </div>
      <div class="small faint state-line">
        <Glyph as={glyphOf(id, entry.activity)} silent />
        <span>
          {entry.activity}, <Ago at={entry.lastSign} before="said this " />
        </span>
      </div>
      <div class="small faint num">
        {changes && changes.files.length > 0 && (
          <>
            <Lines added={changes.added} removed={changes.removed} /> in {changes.files.length}{" "}
            {plural(changes.files.length, "file")} ·{" "}
          </>
        )}
        {money(entry.spent.cost)} · {messagesWord(entry.view.messages)} · since {when(entry.view.created, store.now())}
      </div>
    </div>
  );
}
