// Dialogs: what begins something, and the deeds that ask first. Only killing and abandoning do, and what cannot go on without a choice.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, drawId, type Problem } from "../api/client";
import { store } from "../store/store";
import { Glyph } from "../ui/glyph";
import { group } from "../ui/words";
import { useDraft } from "./drafts";
import { NewQuest } from "./new_quest";
import { go, to } from "./router";
import { signal } from "./signal";

interface Confirm {
  kind: "confirm";
  title: string;
  words: string;
  keep: string;
  choices: { words: string; quiet?: boolean; calm?: boolean; act: () => Promise<unknown> }[];
}

interface Prompt {
  kind: "prompt";
  title: string;
  words: string;
  label: string;
  value: string;
  button: string;
  act: (text: string) => Promise<unknown>;
}

interface ForkOf {
  kind: "fork";
  parent: string;
  name: string;
  at: number | null;
}

export type Dialog = { kind: "quest"; request: string } | { kind: "agent" } | Confirm | Prompt | ForkOf | null;

const dialog = signal<Dialog>(null);
const toast = signal<Problem | null>(null);

export function openDialog(kind: "quest" | "agent", request = ""): void {
  dialog.set(kind === "quest" ? { kind, request } : { kind });
}

export const confirm = (it: Omit<Confirm, "kind">) => dialog.set({ kind: "confirm", ...it });
export const prompt = (it: Omit<Prompt, "kind">) => dialog.set({ kind: "prompt", ...it });
export const forkDialog = (parent: string, name: string, at: number | null) =>
  dialog.set({ kind: "fork", parent, name, at });

/** Says that something was refused, with the reason and what to do. */
export function notify(problem: Problem): void {
  toast.set(problem);
}

export function Dialogs() {
  const open = dialog.use();
  const problem = toast.use();
  return (
    <>
      {open && <Frame key={JSON.stringify(open)} open={open} />}
      {problem && (
        <div class="toast" role="alert">
          <Glyph as="failed" word="refused" />
          <span>
            {problem.message} <span class="faint">{problem.hint}</span>
          </span>
          <button class="btn quiet" type="button" onClick={() => toast.set(null)}>
            Close
          </button>
        </div>
      )}
    </>
  );
}

function Frame({ open }: { open: NonNullable<Dialog> }) {
  const box = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [sending, setSending] = useState(false);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.showModal();
    return () => before?.focus();
  }, []);
  const close = () => dialog.set(null);
  const act = async (deed: () => Promise<unknown>) => {
    setSending(true);
    setProblem(null);
    try {
      await deed();
      close();
    } catch (it) {
      setProblem(it as Problem);
      setSending(false);
    }
  };
  return (
    <dialog
      ref={box}
      class="dialog"
      aria-labelledby="dialog-title"
      onClose={close}
      onClick={(event) => {
        if (event.target === box.current) close();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <Inside open={open} act={act} close={close} sending={sending} />
      {problem && (
        <p class="refused" role="alert">
          <Glyph as="failed" word="refused" />
          <span>
            {problem.message} <span class="faint">{problem.hint}</span>
          </span>
        </p>
      )}
    </dialog>
  );
}

export interface Parts {
  act: (deed: () => Promise<unknown>) => Promise<void>;
  close: () => void;
  sending: boolean;
}

function Inside({ open, ...parts }: { open: NonNullable<Dialog> } & Parts) {
  switch (open.kind) {
    case "quest":
      return <NewQuest request={open.request} {...parts} />;
    case "agent":
      return <NewAgent {...parts} />;
    case "fork":
      return <Fork fork={open} {...parts} />;
    case "prompt":
      return <PromptForm prompt={open} {...parts} />;
    case "confirm":
      return (
        <>
          <h2 id="dialog-title">{open.title}</h2>
          <p>{open.words}</p>
          <div class="actions">
            <button class="btn" type="button" onClick={parts.close}>
              {open.keep}
            </button>
            {open.choices.map((choice) => (
              <button
                class={`btn ${choice.calm ? "line" : choice.quiet ? "danger" : "kills"}`}
                key={choice.words}
                type="button"
                disabled={parts.sending}
                onClick={() => void parts.act(choice.act)}
              >
                {choice.words}
              </button>
            ))}
          </div>
        </>
      );
  }
}

function PromptForm({ prompt: it, act, close, sending }: { prompt: Prompt } & Parts) {
  const [text, setText] = useState(it.value);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void act(() => it.act(text));
      }}
    >
      <h2 id="dialog-title">{it.title}</h2>
      <p>{it.words}</p>
      <label class="labelled">
        {it.label}
        <input class="field" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <button class="btn" type="button" onClick={close}>
          Cancel
        </button>
        <button class="btn you" type="submit" disabled={sending}>
          {it.button}
        </button>
      </div>
    </form>
  );
}

function NewAgent({ act, close, sending }: Parts) {
  const [text, setText] = useDraft("new-agent");
  const [name, setName] = useState("");
  const [id] = useState(drawId);
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void act(async () => {
          await api.run({ id, prompt: text, ...(name.trim() ? { name: name.trim() } : {}) });
          setText("");
          go(to.agent(id));
        });
      }}
    >
      <h2 id="dialog-title">New agent</h2>
      <label class="labelled">
        What shall it do?
        <textarea
          class="field"
          rows={3}
          required
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <label class="labelled">
        Name
        <input class="field" value={name} placeholder="none" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <button class="btn" type="button" onClick={close}>
          Cancel
        </button>
        <button class="btn you" type="submit" disabled={sending || text.trim() === ""}>
          Begin
        </button>
      </div>
    </form>
  );
}

function Fork({ fork, act, close, sending }: { fork: ForkOf } & Parts) {
  const [name, setName] = useState("");
  const [text, setText] = useDraft(`fork:${fork.parent}`);
  const [id] = useState(drawId);
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void act(async () => {
          await api.fork({
            id,
            parent: fork.parent,
            ...(fork.at ? { at: fork.at } : {}),
            ...(name.trim() ? { name: name.trim() } : {}),
          });
          if (text.trim() !== "") await api.say(id, text);
          setText("");
          store.askAgent(id);
          go(to.agent(id));
        });
      }}
    >
      <h2 id="dialog-title">Fork {fork.name}</h2>
      <p>
        {fork.at
          ? `The child knows everything up to #${group(fork.at)}.`
          : "The child knows everything that was said so far."}{" "}
        {fork.name} goes on as it is.
      </p>
      <label class="labelled">
        Name
        <input
          class="field"
          value={name}
          placeholder={`${fork.name}-2`}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label class="labelled">
        What shall it do instead?
        <textarea class="field" rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <button class="btn" type="button" onClick={close}>
          Cancel
        </button>
        <button class="btn you" type="submit" disabled={sending}>
          Fork
        </button>
      </div>
    </form>
  );
}
