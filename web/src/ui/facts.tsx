// What is known of an agent beside its conversation: where it belongs, what it used, what it has changed.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import type { ChangeSet, ContextUse } from "../api/types";
import { to } from "../app/router";
import type { AgentEntry } from "../store/state";
import { store } from "../store/store";
import { Lines } from "./changes";
import { Icon } from "./icon";
import { nameOf, questName } from "./names";
import { titled } from "./roles";
import { ceiling, group, money, tokens } from "./words";

/** How full it is, in percent. */
const share = ({ tokens: used, window }: ContextUse) => (window ? Math.min(100, Math.round((used / window) * 100)) : 0);

function contextWords(context: ContextUse): string {
  return context.window ? `${share(context)} % full` : `${tokens(context.tokens)} tokens`;
}

function contextExact({ tokens: used, window }: ContextUse): string {
  return window ? `${group(used)} of ${group(window)} tokens` : "How much its model can take is known after its turn";
}

/** On a small screen: the facts in one line, which opens all of them. */
export function FactsLine({ entry, open, toggle }: { entry: AgentEntry; open: boolean; toggle: () => void }) {
  const { view, spent } = entry;
  const budget = store.state?.budgets.find((it) => it.agent === view.id);
  return (
    <button class="facts-s only-small" type="button" aria-expanded={open} aria-controls="facts" onClick={toggle}>
      <span class="num">
        {money(spent.cost)}
        {budget && ` of ${ceiling(budget.limit)}`}
      </span>
      {view.assignment && <span class="cut">{view.assignment.step}</span>}
      {view.context && <span class="num">context {contextWords(view.context).replace(" full", "")}</span>}
      <Icon name={open ? "down" : "right"} size={14} />
    </button>
  );
}

interface FactsProps {
  entry: AgentEntry;
  /** Opened on a small screen. */
  open: boolean;
  changes: boolean;
  showChanges: () => void;
}

export function Facts({ entry, open, changes, showChanges }: FactsProps) {
  const { view, run, spent } = entry;
  const budget = store.state?.budgets.find((it) => it.agent === view.id);
  const used = budget ? Math.min(100, (spent.cost.nanodollars / Math.max(1, budget.limit.nanodollars)) * 100) : 0;
  const { context } = view;
  const model = view.model ?? null;
  const harness = run?.harness ?? view.provider ?? null;
  const [set, setSet] = useState<ChangeSet | null>(null);
  useEffect(() => {
    if (!run) return;
    get<ChangeSet>(`/api/agents/${view.id}/changes`).then(setSet, () => setSet(null));
  }, [view.id, run?.phase, run?.turns]);
  return (
    <aside class={`facts${open ? " is-open" : ""}`} id="facts" aria-label="Facts">
      <dl>
        {view.forkedFrom && view.forkPoint && (
          <>
            <dt>Forked from</dt>
            <dd>
              <a class="link" href={to.agent(view.forkedFrom)}>
                {nameOf(view.forkedFrom)}
              </a>{" "}
              <span class="faint">at #{group(view.forkPoint)}</span>
            </dd>
          </>
        )}
        <dt>Work</dt>
        <dd>
          {view.assignment ? (
            <>
              {titled(view.assignment.role)} on{" "}
              <a class="link" href={to.quest(view.assignment.quest, view.assignment.step)}>
                {view.assignment.step}
              </a>
              <span class="faint block cut">{questName(view.assignment.quest)}</span>
            </>
          ) : (
            "on its own, no quest"
          )}
        </dd>
        {harness && (
          <>
            <dt>Runs as</dt>
            <dd>{[harness, model].filter(Boolean).join(" · ")}</dd>
          </>
        )}
        <dt>Cost</dt>
        <dd>
          {money(spent.cost)} {budget && <span class="faint">of {ceiling(budget.limit)}</span>}
          {budget && (
            <span class={`meter${used > 80 ? " is-high" : ""}`}>
              <i style={{ width: `${used}%` }} />
            </span>
          )}
        </dd>
        <dt>Tokens</dt>
        <dd>
          {tokens(spent.inputTokens)} in, {tokens(spent.outputTokens)} out{" "}
          {spent.cacheReadTokens > 0 && <span class="faint">{tokens(spent.cacheReadTokens)} cached</span>}
        </dd>
        {context && (
          <>
            <dt>Context</dt>
            <dd title={contextExact(context)}>
              {contextWords(context)}
              {share(context) > 80 && <span class="faint"> · it is compacted soon</span>}
              {context.window && (
                <span class={`meter${share(context) > 80 ? " is-high" : ""}`} aria-hidden="true">
                  <i style={{ width: `${share(context)}%` }} />
                </span>
              )}
            </dd>
          </>
        )}
        <dt>Messages</dt>
        <dd>{group(view.messages)} of its own</dd>
        <dt>Mail</dt>
        <dd>{view.unreadMail > 0 ? `${view.unreadMail} unread` : "none unread"}</dd>
        <dt>Id</dt>
        <dd>
          <code class="id">{view.id}</code>
        </dd>
      </dl>
      {set && set.files.length > 0 && (
        <>
          <h2>
            Changed <Lines added={set.added} removed={set.removed} />
          </h2>
          <ul class="files">
            {set.files.slice(0, 8).map((file) => (
              <li key={file.path}>
                <span class="path cut">
                  <bdi>{file.path}</bdi>
                </span>
                <Lines added={file.added} removed={file.removed} />
              </li>
            ))}
          </ul>
        </>
      )}
      {run && (
        <div class="actions">
          <button class="btn line" type="button" aria-pressed={changes} onClick={showChanges}>
            {changes ? "See the conversation" : "See the changes"} <kbd>D</kbd>
          </button>
        </div>
      )}
    </aside>
  );
}
