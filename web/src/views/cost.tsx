// What did today cost, and what is left?
import { useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { Usage, UsageView } from "../api/types";
import { prompt } from "../app/dialogs";
import { useActions } from "../app/keys";
import { to } from "../app/router";
import { store, useAttempt, useTopics } from "../store/store";
import { nameOf, questName, whereOf } from "../ui/names";
import { allTokens, ceiling, group, money, plural, tokens } from "../ui/words";
import { Loading } from "./home";

const DAYS = 14;
const SMALL_DAYS = 7;
const DAY_MS = 86_400_000;
const ROWS = 20;

export default function Cost() {
  useTopics("usage", "agents");
  const [by, setBy] = useState<By>("quest");
  const [unit, setUnit] = useState<Unit>("dollars");
  const [usage, setUsage] = useState<UsageView | Problem | null>(null);
  useActions([{ words: "Set a ceiling for each day", act: askCeiling }]);
  const state = store.state;
  const spent = state?.today.cost.nanodollars;
  const attempt = useAttempt(usage instanceof Error);
  useEffect(() => {
    api.usage(DAYS).then(setUsage, setUsage);
  }, [spent, attempt]);
  if (!state || usage === null) return <Loading />;
  if (usage instanceof Error)
    return (
      <div class="empty">
        <h1>The cost cannot be read</h1>
        <p>
          {usage.message} {usage.hint}
        </p>
      </div>
    );
  const budget = state.budgets.find((it) => !it.agent);
  const left = budget ? budget.limit.nanodollars - state.today.cost.nanodollars : null;
  const title = `${money(state.today.cost)} today${left === null ? "" : left >= 0 ? `, and ${money({ nanodollars: left })} left` : `, ${money({ nanodollars: -left })} over the ceiling`}`;
  const agents = [...usage.agents]
    .filter((it) => allTokens(it.spent) > 0 || it.spent.cost.nanodollars > 0)
    .sort((a, b) => value(b.spent, unit) - value(a.spent, unit));
  const series = seriesOf(usage, by, unit);
  const models = new Map((usage.parts ?? []).map((part) => [part.agent, part.model ?? part.harness ?? ""]));
  const most = Math.max(1, value(agents[0]?.spent ?? null, unit));
  return (
    <>
      <header class="head">
        <div>
          <h1>{title}</h1>
          <p class="sub">Days are in UTC, as the ceilings are. Money is what the agents’ own programs report.</p>
        </div>
        <div class="actions right">
          <div class="seg" role="group" aria-label="Stack by">
            {(["quest", "agent", "model"] as const).map((it) => (
              <button key={it} type="button" aria-pressed={by === it} onClick={() => setBy(it)}>
                {it.charAt(0).toUpperCase() + it.slice(1)}
              </button>
            ))}
          </div>
          <div class="seg" role="group" aria-label="Show">
            <button type="button" aria-pressed={unit === "dollars"} onClick={() => setUnit("dollars")}>
              Dollars
            </button>
            <button type="button" aria-pressed={unit === "tokens"} onClick={() => setUnit("tokens")}>
              Tokens
            </button>
          </div>
        </div>
      </header>
      <div class="cost-cols">
        <section aria-label="By day">
          <div class="section-head">
            <h2>By day</h2>
            <span class="faint small num">
              in all {money(usage.total.cost)}, {tokens(allTokens(usage.total))} tokens
            </span>
          </div>
          <Plot usage={usage} unit={unit} series={series} now={store.now()} />
        </section>
        <Legend by={by} unit={unit} series={series} />
        <section aria-label="By agent">
          <div class="section-head">
            <h2>By agent</h2>
            <span class="faint small">
              {group(agents.length)} {plural(agents.length, "agent")}
            </span>
          </div>
          {agents.length === 0 ? (
            <div class="empty">
              <h3>Nothing was used yet</h3>
              <p>Each agent stands here with its tokens and its money.</p>
            </div>
          ) : (
            <table class="table">
              <thead>
                <tr>
                  <th>Agent</th>
                  <th class="hide-small">Work</th>
                  <th class="hide-small">Model</th>
                  <th class="n hide-small">In</th>
                  <th class="n hide-small">Out</th>
                  <th class="n hide-small">Cached</th>
                  <th class="share hide-small">
                    <span class="sr">Share</span>
                  </th>
                  <th class="n">Cost</th>
                </tr>
              </thead>
              <tbody>
                {agents.slice(0, ROWS).map(({ agent, spent: used }) => (
                  <tr key={agent}>
                    <td>
                      <a class="link" href={to.agent(agent)}>
                        {nameOf(agent)}
                      </a>
                    </td>
                    <td class="muted hide-small">{whereOf(agent)}</td>
                    <td class="muted hide-small">{models.get(agent) ?? ""}</td>
                    <td class="n muted hide-small">{tokens(used.inputTokens)}</td>
                    <td class="n muted hide-small">{tokens(used.outputTokens)}</td>
                    <td class="n muted hide-small">{tokens(used.cacheReadTokens)}</td>
                    <td class="share hide-small">
                      <span class="bar" style={{ width: `${(value(used, unit) / most) * 100}%` }} />
                    </td>
                    <td class="n">{money(used.cost)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {agents.length > ROWS && <p class="small faint">and {group(agents.length - ROWS)} more</p>}
        </section>
        <Ceilings />
      </div>
    </>
  );
}

function value(usage: Usage | null, unit: Unit): number {
  if (!usage) return 0;
  return unit === "dollars" ? usage.cost.nanodollars : allTokens(usage);
}

type Unit = "dollars" | "tokens";
type By = "quest" | "agent" | "model";

interface Series {
  name: string;
  /** By day, since 1970. */
  days: Map<number, number>;
  total: number;
  open: boolean;
}

/** Four are told apart; the rest is one. */
const TOLD_APART = 4;

function seriesOf(usage: UsageView, by: By, unit: Unit): Series[] {
  const all = new Map<string, Series>();
  for (const part of usage.parts ?? []) {
    const key = by === "quest" ? (part.quest ?? "") : by === "agent" ? part.agent : (part.model ?? part.harness ?? "");
    const name =
      by === "quest"
        ? part.quest
          ? questName(part.quest)
          : "agents on their own"
        : by === "agent"
          ? (part.name ?? nameOf(part.agent))
          : key || "unknown";
    const series = all.get(key) ?? {
      name,
      days: new Map(),
      total: 0,
      open: by === "quest" && store.state?.quests.get(key)?.state === "open",
    };
    const day = Math.floor(part.day / DAY_MS);
    const used = value(part.spent, unit);
    series.days.set(day, (series.days.get(day) ?? 0) + used);
    series.total += used;
    all.set(key, series);
  }
  const sorted = [...all.values()]
    .filter((it) => it.total > 0)
    .sort((a, b) => Number(b.open) - Number(a.open) || b.total - a.total);
  if (sorted.length <= TOLD_APART + 1) return sorted;
  const rest: Series = { name: `${sorted.length - TOLD_APART} more`, days: new Map(), total: 0, open: false };
  for (const it of sorted.slice(TOLD_APART)) {
    rest.total += it.total;
    for (const [day, used] of it.days) rest.days.set(day, (rest.days.get(day) ?? 0) + used);
  }
  return [...sorted.slice(0, TOLD_APART), rest];
}

const say = (n: number, unit: Unit) => (unit === "dollars" ? money({ nanodollars: n }) : tokens(n));

/** What the shades of the bars mean. */
function Legend({ by, unit, series }: { by: By; unit: Unit; series: Series[] }) {
  return (
    <section aria-label={`By ${by}`}>
      <div class="section-head">
        <h2>By {by}</h2>
      </div>
      {series.length === 0 && <p class="small faint">Nothing was used yet.</p>}
      <ul class="legend">
        {series.map((it, index) => (
          <li key={it.name}>
            <i class={`s${index}`} aria-hidden="true" />
            <span class="cut" title={it.name}>
              {it.name}
            </span>
            {it.open && <span class="faint whole">· open</span>}
            <span class="num muted">{say(it.total, unit)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Plot({ usage, unit, series, now }: { usage: UsageView; unit: Unit; series: Series[]; now: number }) {
  const today = Math.floor(now / DAY_MS);
  // At a hand's width there is room for the words of a week.
  const small = matchMedia("(max-width: 860px)").matches;
  const shown = small ? SMALL_DAYS : DAYS;
  const days = Array.from({ length: shown }, (_, at) => {
    const day = today - shown + 1 + at;
    const used = usage.days.find((it) => Math.floor(it.day / DAY_MS) === day);
    return { day, used: value(used?.spent ?? null, unit) };
  });
  // An axis without bars ends at a dollar, or at a thousand tokens.
  const most = Math.max(...days.map((it) => it.used)) || (unit === "dollars" ? 1e9 : 1000);
  const top = nice(most);
  const [wide, high, base, left] = [small ? 380 : 760, 212, 188, 44];
  const step = (wide - left) / shown;
  const date = (day: number) =>
    new Date(day * DAY_MS).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", timeZone: "UTC" });
  const busiest = days.reduce((a, b) => (b.used > a.used ? b : a));
  const words = `${unit === "dollars" ? "Dollars" : "Tokens"} by day. Today ${say(days.at(-1)?.used ?? 0, unit)}; the most was ${say(busiest.used, unit)} on ${date(busiest.day)}.`;
  return (
    <>
      <svg class="plot" viewBox={`0 0 ${wide} ${high}`} role="img" aria-label={words}>
        {[0, 0.5, 1].map((share) => {
          const y = base - share * (base - 20);
          return (
            <g key={share}>
              <line x1={left - 8} x2={wide} y1={y} y2={y} />
              <text x="0" y={y + 4}>
                {say(top * share, unit)}
              </text>
            </g>
          );
        })}
        {days.map(({ day, used }, at) => {
          const x = left + at * step + step * 0.16;
          let y = base;
          const told = series.map((it, index) => {
            const tall = ((it.days.get(day) ?? 0) / top) * (base - 20);
            y -= tall;
            return tall > 0 ? (
              <rect
                key={it.name}
                class={`s${index}`}
                x={x}
                y={y + 1}
                width={step * 0.68}
                height={Math.max(1, tall - 1)}
                rx="1"
              />
            ) : null;
          });
          const rest = y - (base - (used / top) * (base - 20));
          return (
            <g key={day}>
              {told}
              {rest > 1 && <rect class="s4" x={x} y={y - rest + 1} width={step * 0.68} height={rest - 1} rx="1" />}
              {used > 0 && (day === today || day === busiest.day) && (
                <text class="sum" x={x + step * 0.34} y={base - (used / top) * (base - 20) - 6} text-anchor="middle">
                  {say(used, unit)}
                </text>
              )}
              <text class={day === today ? "is-today" : ""} x={x + step * 0.34} y="205" text-anchor="middle">
                {day === today ? "today" : date(day).replace(",", "")}
              </text>
            </g>
          );
        })}
      </svg>
      <div class="sr">
        <table>
          <caption>{words}</caption>
          <tbody>
            {days.map(({ day, used }) => (
              <tr key={day}>
                <th scope="row">{date(day)}</th>
                <td>{say(used, unit)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The next round number. */
function nice(n: number): number {
  const power = 10 ** Math.floor(Math.log10(n));
  return ([1, 2, 4, 5, 10].find((it) => it * power >= n) ?? 10) * power;
}

function askCeiling(): void {
  const limit = store.state?.budgets.find((it) => !it.agent)?.limit;
  prompt({
    title: "A ceiling for each day",
    words:
      "What all agents may use in a day, in dollars. Those in a turn finish it; then you are asked. Leave it empty for none.",
    label: "Dollars",
    value: limit ? String(limit.nanodollars / 1e9) : "",
    button: "Set ceiling",
    act: (text) => api.setBudget(null, text.trim() === "" ? null : text.replace("$", "")),
  });
}

function Ceilings() {
  const budgets = store.state?.budgets ?? [];
  const quests = [...(store.state?.quests.values() ?? [])].flatMap((line) => {
    const quest = store.quest(line.id);
    return quest?.budget && (quest.state === "open" || quest.state === "paused")
      ? [{ id: line.id, name: line.request, limit: quest.budget, spent: quest.spent.cost }]
      : [];
  });
  const rows = [
    ...budgets.map((it) => ({
      key: it.agent ?? "day",
      name: it.agent ? nameOf(it.agent) : "Each day",
      limit: it.limit,
      spent: it.spent,
    })),
    ...quests.map((it) => ({ key: it.id, name: it.name, limit: it.limit, spent: it.spent })),
  ];
  return (
    <section aria-label="Ceilings" class="ceilings">
      <div class="section-head">
        <h2>Ceilings</h2>
        <button class="btn quiet end small-btn" type="button" onClick={askCeiling}>
          Set one
        </button>
      </div>
      {rows.length === 0 && (
        <p class="small faint">
          There is no ceiling. With one, agents finish their turn when it is reached, and you are asked.
        </p>
      )}
      <ul>
        {rows.map((row) => {
          const share = Math.min(100, (row.spent.nanodollars / Math.max(1, row.limit.nanodollars)) * 100);
          return (
            <li key={row.key}>
              <div class="line-of-two">
                <span class="cut">{row.name}</span>
                <span class="num muted">
                  {money(row.spent)} of {ceiling(row.limit)}
                </span>
              </div>
              <span class={`meter${share > 80 ? " is-high" : ""}`}>
                <i style={{ width: `${share}%` }} />
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
