// Find or do anything: one field, one list.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { store } from "../store/store";
import { Glyph, standingOf, standingOfStep } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { BESIDE } from "../ui/key_names";
import { besides, nameOf, questName } from "../ui/names";
import { group as grouped } from "../ui/words";
import { actionsOn, buttonsHere, ofAgent } from "./chosen";
import { openDialog } from "./dialogs";
import { type Action, ANYWHERE, actionsHere } from "./keys";
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
  /** Where it leads, for those who want to have it in a tab of its own. */
  path?: string;
  act: () => void;
}

const SHOWN = 6;
/** How many buttons of the view are shown, and how many of those that fit what is typed. */
const BUTTONS = 8;
const FITTING = 20;
/** How long somebody types before events are counted: the daemon reads the log for it. */
const TYPING_MS = 300;
/** The longest words that are looked for, in bytes, as the daemon has it. */
const MAX_WORDS_BYTES = 256;

/** How many events have some words in them. */
interface Matching {
  word: string;
  count: number;
  whole: boolean;
}

function useMatching(text: string): Matching | null {
  const [matching, setMatching] = useState<Matching | null>(null);
  const word = text.trim();
  useEffect(() => {
    if (word === "" || new TextEncoder().encode(word).length > MAX_WORDS_BYTES) return;
    let isWanted = true;
    const timer = setTimeout(() => {
      api.countEvents({ words: word }, 0).then(
        ({ count, upto, head }) => isWanted && setMatching({ word, count, whole: upto >= head }),
        () => {},
      );
    }, TYPING_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [word]);
  return matching?.word === word ? matching : null;
}

const goTo = (path: string) => ({ group: "Go to", path, act: () => go(path) });

function choices(text: string, from: Element | null, matching: Matching | null): Choice[] {
  const word = text.trim().toLowerCase();
  const has = (name: string) => word === "" || name.toLowerCase().includes(word);
  const found: Choice[] = [];
  const entries = [...(store.state?.agents.values() ?? [])].reverse();
  const agents = entries.filter((it) => it.view.parent && (has(it.view.name ?? "") || it.view.id === text.trim()));
  const busy = agents.filter((it) => ["working", "starting", "silent", "parked"].includes(it.activity));
  const shown = [...busy, ...agents.filter((it) => !busy.includes(it))].slice(0, word === "" ? 4 : SHOWN);
  for (const entry of shown) {
    const { id } = entry.view;
    const doing = entry.doing
      ? `${entry.doing.tool ?? ""} ${entry.doing.text}`.trim()
      : (entry.view.assignment?.step ?? entry.activity);
    found.push({
      ...goTo(to.agent(id)),
      words: nameOf(id),
      more: [besides(id), doing].filter(Boolean).join(" · "),
      sign: <Glyph as={standingOf(entry.activity)} silent />,
    });
  }
  for (const line of [...(store.state?.quests.values() ?? [])]
    .reverse()
    .filter((it) => has(it.request))
    .slice(0, 4)) {
    found.push({
      ...goTo(to.quest(line.id)),
      words: line.request,
      more: `quest · ${line.state}`,
      sign: <Icon name="quests" />,
    });
  }
  if (word !== "") {
    for (const line of store.state?.quests.values() ?? []) {
      for (const step of store.quest(line.id)?.steps ?? []) {
        if (!step.id.includes(word) || found.length > 12) continue;
        found.push({
          ...goTo(to.quest(line.id, step.id)),
          words: `step ${step.id}`,
          more: questName(line.id),
          sign: <Glyph as={standingOfStep(step.status)} silent />,
        });
      }
    }
    found.push({
      ...goTo(`/log?words=${encodeURIComponent(text.trim())}`),
      words: `events with “${text.trim()}” in them`,
      ...(matching ? { more: `${grouped(matching.count)}${matching.whole ? "" : " or more"}` } : {}),
      sign: <Icon name="log" />,
    });
  }
  for (const view of VIEWS.filter((it) => has(it.name))) {
    found.push({
      ...goTo(view.path),
      words: view.name,
      key: `G ${view.key}`,
      sign: <Icon name={view.icon} />,
    });
  }
  const offer = (group: string, actions: Action[]) => {
    for (const { words, key, act } of actions)
      found.push({ group, words, ...(key ? { key } : {}), sign: <Icon name="right" />, act: () => void act() });
  };
  const here = actionsHere();
  const chosen = actionsOn(from).filter((it) => !here.some((other) => other.key === it.key));
  const known = [...here, ...chosen];
  offer(
    "Do here",
    known.filter((it) => has(it.words)),
  );
  // Everything that a button does, by the same words.
  const buttons = buttonsHere().filter(
    ({ words, about }) =>
      (has(words) || has(about)) &&
      ![...known, ...ANYWHERE].some((it) => it.words.toLowerCase().startsWith(words.toLowerCase())),
  );
  for (const { words, about, act } of buttons.slice(0, word === "" ? BUTTONS : FITTING))
    found.push({
      group: "Do here",
      words,
      ...(about && !words.includes(about) ? { more: about } : {}),
      sign: <Icon name="right" />,
      act,
    });
  const first = word === "" ? undefined : shown[0];
  if (first) {
    const doable = ofAgent(first.view.id).filter((it) => !known.some((other) => other.words === it.words));
    offer(`Do with ${nameOf(first.view.id)}`, doable);
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
  // What had the focus before the palette took it is what was chosen.
  const [from] = useState(() => document.activeElement);
  const all = choices(text, from, useMatching(text));
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
  const take = (choice: Choice | undefined, beside = false) => {
    if (!choice) return;
    close();
    if (beside && choice.path) {
      globalThis.open(choice.path, "_blank", "noopener");
      return;
    }
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
        else if (event.key === "Enter") take(all[chosen], event.metaKey || event.ctrlKey);
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
                  onClick={(event) => take(choice, event.metaKey || event.ctrlKey)}
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
          <kbd>{BESIDE}</kbd> open beside
        </span>
        <span>
          <kbd>?</kbd> all keys
        </span>
      </div>
    </dialog>
  );
}
