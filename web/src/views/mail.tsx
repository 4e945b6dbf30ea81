// Mail: is something for me? Then what agents write to each other.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { SeenMail } from "../api/types";
import { notify, prompt } from "../app/dialogs";
import { useDraft } from "../app/drafts";
import { useActions } from "../app/keys";
import { go, to } from "../app/router";
import { keyOf, type Letter, type Thread, threadsOf, useLetters } from "../store/letters";
import { store, useTopics } from "../store/store";
import { Glyph } from "../ui/glyph";
import { SEND } from "../ui/key_names";
import { besides, nameOf } from "../ui/names";
import { Age, At } from "../ui/time";
import { Count, firstLine, list, plain, plural } from "../ui/words";
import { Loading } from "./home";

/** Unread mail to the human. */
const waitsIn = (thread: Thread) => thread.mail.filter((it) => it.to === "human" && it.state !== "read").length;

export default function Mail({ parts }: { parts: string[] }) {
  useTopics("mail", "agents");
  const { letters, earlier } = useLetters();
  const chosen = parts.length > 1 ? keyOf(parts.slice(1)) : null;
  const write = () =>
    prompt({
      title: "New mail",
      words: "To an agent, by its name or its id. It reads its mail when it looks.",
      label: "To",
      value: "",
      button: "Write",
      act: async (text) => {
        const view = await api.agent(text.trim());
        store.meet(view);
        go(`/mail/${view.id}`);
      },
    });
  useActions([
    { key: "C", words: "New mail", act: write },
    { key: "S", words: "Write to this thread", act: () => document.getElementById("mail")?.focus() },
  ]);
  if (!store.state || letters === null) return <Loading />;
  if (letters instanceof Error)
    return (
      <div class="empty">
        <h1>The mail cannot be read</h1>
        <p>
          {letters.message} {letters.hint}
        </p>
      </div>
    );
  // What waits for the human is on top.
  const threads = threadsOf(letters.mail).sort((a, b) => Number(waitsIn(b) > 0) - Number(waitsIn(a) > 0));
  if (chosen && !threads.some((it) => it.key === chosen))
    threads.unshift({ key: chosen, others: chosen.split("/"), mail: [] });
  const n = store.state.mail.size;
  const title =
    n === 0 ? "No mail for you is unread" : `${Count(n)} ${plural(n, "mail")} for you ${n === 1 ? "is" : "are"} unread`;
  const open = threads.find((it) => it.key === chosen) ?? threads.find((it) => waitsIn(it) > 0) ?? threads[0] ?? null;
  return (
    <>
      <header class="head">
        <div>
          <h1>{title}</h1>
          <p class="sub">Mail is durable, first in first out. Agents read it when they look; a mail is never lost.</p>
        </div>
        <div class="actions right">
          <button class="btn line" type="button" onClick={write}>
            New mail <kbd>C</kbd>
          </button>
        </div>
      </header>
      {threads.length === 0 ? (
        <div class="empty">
          <h3>No mail yet</h3>
          <p>What agents write to you and to each other stands here, and so does what you write to them.</p>
        </div>
      ) : (
        <div class={`mail-cols${chosen ? " has-chosen" : ""}`}>
          <section class="threads" aria-label="Threads">
            {threads.map((thread) => (
              <ThreadRow key={thread.key} thread={thread} isOpen={thread === open} />
            ))}
            {letters.more && (
              <button
                class="btn quiet"
                type="button"
                onClick={() => void earlier().catch((problem: Problem) => notify(problem))}
              >
                Look for earlier mail
              </button>
            )}
          </section>
          {open && <OneThread key={open.key} thread={open} />}
        </div>
      )}
    </>
  );
}

function ThreadRow({ thread, isOpen }: { thread: Thread; isOpen: boolean }) {
  const last = thread.mail.at(-1);
  const waits = waitsIn(thread);
  const [first = "", second] = thread.others;
  // Of two agents, the one that wrote last stands in front.
  const lead = second && last ? last.from : first;
  const rest = thread.others.find((it) => it !== lead);
  const what = rest ? `with ${nameOf(rest)}` : !last ? "new" : last.to === "human" ? "to you" : "from you";
  const where = [besides(lead), what].filter(Boolean).join(" · ");
  return (
    <a
      class={`row is-flat${waits > 0 ? " is-new" : ""}${isOpen ? " is-chosen" : ""}`}
      aria-current={isOpen ? "true" : undefined}
      href={`/mail/${thread.key}`}
    >
      <div>
        <div class="title">
          <b class="cut">{nameOf(lead)}</b>
          <span class="where cut">{where}</span>
        </div>
        <div class="now cut">{plain(firstLine(last?.body ?? ""))}</div>
      </div>
      <div class="aside">
        {last && <Age at={last.sent} />}
        {waits > 0 && <span class="badge">{waits}</span>}
      </div>
    </a>
  );
}

function OneThread({ thread }: { thread: Thread }) {
  const names = list(thread.others.map(nameOf));
  return (
    <section class="thread" aria-label={names}>
      <a class="link small faint only-small" href="/mail">
        All mail
      </a>
      <div class="section-head">
        <h2 class="thread-name">
          {thread.others.map((other, at) => (
            <>
              {at > 0 && " and "}
              <a href={to.agent(other)} key={other}>
                {nameOf(other)}
              </a>
              {besides(other) && <span class="faint small"> {besides(other)}</span>}
            </>
          ))}
        </h2>
        <span class="faint small">
          {thread.mail.length} {plural(thread.mail.length, "mail")}
        </span>
      </div>
      {thread.mail.map((letter) => (
        <OneLetter key={letter.id} letter={letter} />
      ))}
      <Compose thread={thread} />
    </section>
  );
}

function OneLetter({ letter }: { letter: Letter }) {
  const words: Record<SeenMail["state"], string> = {
    queued: "waits to be read",
    delivered: "handed over",
    read: "read",
  };
  return (
    <article class={`msg${letter.from === "human" ? " is-human" : ""}`}>
      <div class="by">
        <b>{nameOf(letter.from)}</b>
        <span>to {letter.to === "human" ? "you" : nameOf(letter.to)}</span>
        <At at={letter.sent} />
        {letter.to === "human" && letter.state !== "read" ? (
          <button
            class="btn line small-btn push"
            type="button"
            onClick={() => api.readMail(letter.id).catch((problem: Problem) => notify(problem))}
          >
            <Glyph as="done" silent /> Mark as read
          </button>
        ) : (
          <span class="push">
            {words[letter.state]} {letter.state === "read" && letter.readAt && <At at={letter.readAt} />}
          </span>
        )}
      </div>
      <div class="body prose said-by-you">{plain(letter.body)}</div>
    </article>
  );
}

/** To the agent of the thread, or to those of the two that are chosen. */
function Compose({ thread }: { thread: Thread }) {
  const [draft, setDraft] = useDraft(`mail:${thread.key}`);
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [whom, setWhom] = useState<string[]>(thread.others);
  const names = list(whom.map(nameOf));
  /** Those that are written to, and have not got it yet as far as is known: an answer may be lost, but not the event. */
  const waiting = useRef<{ body: string; to: Set<string> } | null>(null);
  const got = (other: string) => {
    const now = waiting.current;
    if (!now?.to.delete(other)) return;
    if (now.to.size > 0) {
      setWhom([...now.to]);
      return;
    }
    waiting.current = null;
    setDraft("");
    setWhom(thread.others);
    setProblem(null);
  };
  useEffect(
    () =>
      store.tap((event) => {
        if (event.type === "mail_sent" && event.from === "human" && event.body === waiting.current?.body) got(event.to);
      }),
    [thread.key],
  );
  const send = async () => {
    if (draft.trim() === "" || sending || whom.length === 0) return;
    setSending(true);
    setProblem(null);
    waiting.current = { body: draft, to: new Set(whom) };
    try {
      // Somebody who has it is not written to again when the next one fails.
      for (const other of whom) {
        await api.sendMail(other, draft);
        got(other);
      }
    } catch (it) {
      if (waiting.current) setProblem(it as Problem);
    }
    setSending(false);
  };
  return (
    <form
      class="composer is-still"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {problem && (
        <p class="refused" role="alert">
          <Glyph as="failed" word="refused" />
          <span>
            {problem.away ? "The daemon is away. Your words are still here." : problem.message}{" "}
            <span class="faint">{problem.away ? "" : problem.hint}</span>
          </span>
        </p>
      )}
      <div class="box">
        <label class="sr" for="mail">
          Mail to {names}
        </label>
        <textarea
          id="mail"
          rows={2}
          placeholder={`Mail to ${names}`}
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) void send();
          }}
        />
        <div class="bar">
          {thread.others.length > 1 ? (
            <span class="whom" role="group" aria-label="To">
              From you, to
              {thread.others.map((other) => (
                <label key={other}>
                  <input
                    type="checkbox"
                    checked={whom.includes(other)}
                    onChange={(event) => {
                      const on = event.currentTarget.checked;
                      setWhom((now) => thread.others.filter((it) => (it === other ? on : now.includes(it))));
                    }}
                  />
                  {nameOf(other)}
                </label>
              ))}
            </span>
          ) : (
            <span>From you</span>
          )}
          <button class="btn you" type="submit" disabled={sending || draft.trim() === "" || whom.length === 0}>
            {sending ? "Sending …" : "Send"} <kbd>{SEND}</kbd>
          </button>
        </div>
      </div>
    </form>
  );
}
