// Find or do anything: one field, one list.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import { store } from "../store/store";
import { Glyph, standingOf, standingOfStep } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { nameOf, questName } from "../ui/names";
import { forkDialog, notify, openDialog } from "./dialogs";
import { ANYWHERE, actionsHere, focusSoon } from "./keys";
import { palette } from "./palette_state";
import { go, to } from "./router";
import { switchTheme } from "./shell";
import { VIEWS } from "./views";

interface Choice {
  group: string;
  words: string;
  more?: string;
  key?: string;
  sign: ComponentChildren;
  act: () => void;
}

const SHOWN = 6;

function choices(text: string): Choice[] {
  const word = text.trim().toLowerCase();
  const has = (name: string) => word === "" || name.toLowerCase().includes(word);
  const found: Choice[] = [];
  const entries = [...(store.state?.agents.values() ?? [])].reverse();
  const agents = entries.filter((it) => it.view.parent && (has(it.view.name ?? "") || it.view.id === text.trim()));
  const busy = agents.filter((it) => ["working", "starting", "silent", "parked"].includes(it.activity));
  const shown = [...busy, ...agents.filter((it) => !busy.includes(it))].slice(0, word === "" ? 4 : SHOWN);
  for (const entry of shown) {
    const { id } = entry.view;
    found.push({
      group: "Go to",
      words: nameOf(id),
      more: entry.doing
        ? `${entry.doing.tool ?? ""} ${entry.doing.text}`.trim()
        : (entry.view.assignment?.step ?? entry.activity),
      sign: <Glyph as={standingOf(entry.activity)} silent />,
      act: () => go(to.agent(id)),
    });
  }
  for (const line of [...(store.state?.quests.values() ?? [])]
    .reverse()
    .filter((it) => has(it.request))
    .slice(0, 4)) {
    found.push({
      group: "Go to",
      words: line.request,
      more: `quest · ${line.state}`,
      sign: <Icon name="quests" />,
      act: () => go(to.quest(line.id)),
    });
  }
  if (word !== "") {
    for (const line of store.state?.quests.values() ?? []) {
      for (const step of store.quest(line.id)?.steps ?? []) {
        if (!step.id.includes(word) || found.length > 12) continue;
        found.push({
          group: "Go to",
          words: `step ${step.id}`,
          more: questName(line.id),
          sign: <Glyph as={standingOfStep(step.status)} silent />,
          act: () => go(to.quest(line.id, step.id)),
        });
      }
    }
    found.push({
      group: "Go to",
      words: `events with “${text.trim()}” in them`,
      sign: <Icon name="log" />,
      act: () => go(`/log?words=${encodeURIComponent(text.trim())}`),
    });
  }
  for (const view of VIEWS.filter((it) => has(it.name))) {
    found.push({
      group: "Go to",
      words: view.name,
      key: `G ${view.key}`,
      sign: <Icon name={view.icon} />,
      act: () => go(view.path),
    });
  }
  for (const { words, key, act } of actionsHere().filter((it) => has(it.words)))
    found.push({
      group: "Do here",
      words,
      ...(key ? { key } : {}),
      sign: <Icon name="right" />,
      act: () => void act(),
    });
  const first = word === "" ? undefined : shown[0];
  if (first) {
    const { id } = first.view;
    const name = nameOf(id);
    const group = `Do with ${name}`;
    const deed = (it: Promise<unknown>) => void it.catch((problem: Problem) => notify(problem));
    found.push({
      group,
      words: `Say something to ${name}`,
      key: "S",
      sign: <Icon name="mail" />,
      act: () => {
        go(to.agent(id));
        focusSoon(() => document.getElementById("say"));
      },
    });
    found.push({
      group,
      words: `Fork ${name} at its last message`,
      key: "F",
      sign: <Icon name="fork" />,
      act: () => forkDialog(id, name, null),
    });
    if (first.activity === "working")
      found.push({
        group,
        words: "Interrupt its turn",
        key: "⇧I",
        sign: <Icon name="close" />,
        act: () => deed(api.interrupt(id)),
      });
    if (["working", "starting", "listening", "parked", "silent"].includes(first.activity))
      found.push({
        group,
        words: `Stop ${name}`,
        key: "X",
        sign: <Icon name="close" />,
        act: () => deed(api.stop(id)),
      });
  }
  const anywhere: Choice[] = [
    ...ANYWHERE.map(({ key, words, act }) => ({
      group: "Do anywhere",
      words,
      key,
      sign: <Icon name={key === "N" ? "quests" : "right"} />,
      act: () => void act(),
    })),
    { group: "Do anywhere", words: "New agent", sign: <Icon name="agents" />, act: () => openDialog("agent") },
    { group: "Do anywhere", words: "Switch between light and dark", sign: <Icon name="theme" />, act: switchTheme },
  ];
  found.push(...anywhere.filter((it) => has(it.words)));
  if (word !== "")
    found.push({
      group: "Do anywhere",
      words: `New quest: “${text.trim()}”`,
      sign: <Icon name="quests" />,
      act: () => openDialog("quest", text.trim()),
    });
  return found;
}

export function Palette() {
  const open = palette.use();
  return open ? <Box text={open.text} /> : null;
}

function Box({ text: first }: { text: string }) {
  const [text, setText] = useState(first);
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDialogElement>(null);
  const all = choices(text);
  const chosen = Math.min(at, all.length - 1);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.showModal();
    return () => before?.focus();
  }, []);
  useEffect(() => {
    document.getElementById(`choice-${chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const close = () => palette.set(null);
  const take = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    // After the palette has given the focus back.
    setTimeout(choice.act, 0);
  };
  const groups = [...new Set(all.map((choice) => choice.group))];
  return (
    <dialog
      ref={box}
      class="palette"
      aria-label="Find or do something"
      onClose={close}
      onClick={(event) => {
        if (event.target === box.current) close();
      }}
      onKeyDown={(event) => {
        if (event.key === "ArrowDown") setAt(Math.min(all.length - 1, chosen + 1));
        else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
        else if (event.key === "Enter") take(all[chosen]);
        else if (event.key === "Escape") close();
        else return;
        event.preventDefault();
      }}
    >
      <div class="entry">
        <Icon name="find" size={18} />
        <input
          aria-label="Find or do something"
          role="combobox"
          aria-expanded="true"
          aria-controls="choices"
          aria-activedescendant={`choice-${chosen}`}
          autocomplete="off"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
        />
        <kbd>esc</kbd>
      </div>
      <div id="choices" role="listbox" aria-label="What was found">
        {groups.map((group) => (
          <div key={group} role="group" aria-label={group}>
            <div class="group-name" aria-hidden="true">
              {group}
            </div>
            {all.map((choice, index) =>
              choice.group !== group ? null : (
                <div
                  key={index}
                  id={`choice-${index}`}
                  class="choice"
                  role="option"
                  tabIndex={-1}
                  aria-selected={index === chosen}
                  onMouseMove={() => setAt(index)}
                  onClick={() => take(choice)}
                >
                  {choice.sign}
                  <span class="cut">
                    {choice.words} {choice.more && <span class="faint small">{choice.more}</span>}
                  </span>
                  <span class="end">
                    {choice.key?.split(" ").map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </span>
                </div>
              ),
            )}
          </div>
        ))}
      </div>
      <div class="foot hide-small">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> choose
        </span>
        <span>
          <kbd>↵</kbd> open
        </span>
        <span>
          <kbd>?</kbd> all keys
        </span>
      </div>
    </dialog>
  );
}
