// Mail: is something for me?
import { useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { SeenMail } from "../api/types";
import { notify, prompt } from "../app/dialogs";
import { useDraft } from "../app/drafts";
import { setActions } from "../app/keys";
import { go, to } from "../app/router";
import { store, useTopics } from "../store/store";
import { Glyph } from "../ui/glyph";
import { nameOf } from "../ui/names";
import { Age } from "../ui/time";
import { Count, clockSeconds, exact, firstLine, plain, plural } from "../ui/words";
import { Loading } from "./home";

interface Box {
  mail: SeenMail[];
  /** To look further back. */
  before: number | null;
}

/** All mail from and to the human: looked at once, then added to by the stream. Looking is not reading. */
function useMail(): { box: Box | Problem | null; more: () => void } {
  const [box, setBox] = useState<Box | Problem | null>(null);
  useEffect(() => {
    let pending: ((now: Box) => Box)[] | null = [];
    const change = (it: (now: Box) => Box) => {
      if (pending) pending.push(it);
      else setBox((now) => (now && !(now instanceof Error) ? it(now) : now));
    };
    const state = (id: number, word: SeenMail["state"]) => (now: Box) => ({
      ...now,
      mail: now.mail.map((it) => (it.id === id ? { ...it, state: word } : it)),
    });
    const stop = store.tap((event) => {
      if (event.type === "mail_sent" && (event.to === "human" || event.from === "human")) {
        const mail: SeenMail = {
          id: event.id,
          from: event.from,
          to: event.to,
          sent: event.ts,
          body: event.body,
          state: "queued",
        };
        change((now) => (now.mail.some((it) => it.id === mail.id) ? now : { ...now, mail: [...now.mail, mail] }));
      } else if (event.type === "mail_read") change(state(event.mail, "read"));
      else if (event.type === "mail_delivered") change(state(event.mail, "delivered"));
    });
    api.mailThreads(null).then(
      ({ mail, before }) => {
        const waiting = pending ?? [];
        pending = null;
        setBox(waiting.reduce((now, it) => it(now), { mail, before: before ?? null } as Box));
      },
      (problem: Problem) => setBox(problem),
    );
    return stop;
  }, []);
  const more = () => {
    if (!box || box instanceof Error || box.before === null) return;
    api.mailThreads(box.before).then(
      ({ mail, before }) =>
        setBox((now) =>
          now && !(now instanceof Error) ? { mail: [...mail, ...now.mail], before: before ?? null } : now,
        ),
      (problem: Problem) => notify(problem),
    );
  };
  return { box, more };
}

export default function Mail({ parts }: { parts: string[] }) {
  useTopics("mail", "agents");
  const { box, more } = useMail();
  const chosen = parts[1] ?? null;
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
  useEffect(() => setActions({ C: write }));
  if (!store.state || box === null) return <Loading />;
  if (box instanceof Error)
    return (
      <div class="empty">
        <h3>The mail cannot be read</h3>
        <p>
          {box.message} {box.hint}
        </p>
      </div>
    );
  const byOther = new Map<string, SeenMail[]>();
  for (const letter of box.mail) {
    const other = letter.from === "human" ? letter.to : letter.from;
    byOther.set(other, [...(byOther.get(other) ?? []), letter]);
  }
  if (chosen && !byOther.has(chosen)) byOther.set(chosen, []);
  const threads = [...byOther].sort(
    (a, b) => (b[1].at(-1)?.id ?? Number.MAX_SAFE_INTEGER) - (a[1].at(-1)?.id ?? Number.MAX_SAFE_INTEGER),
  );
  const n = store.state.mail.size;
  const title =
    n === 0 ? "No mail for you is unread" : `${Count(n)} ${plural(n, "mail")} for you ${n === 1 ? "is" : "are"} unread`;
  const open = chosen ?? threads[0]?.[0] ?? null;
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
          <p>What agents write to you stands here, and so does what you write to them.</p>
        </div>
      ) : (
        <div class="mail-cols">
          <section aria-label="Threads">
            {threads.map(([other, thread]) => {
              const last = thread.at(-1);
              const waits = thread.filter((it) => it.to === "human" && it.state !== "read").length;
              return (
                <a
                  key={other}
                  class={`row is-flat${waits > 0 ? " is-new" : ""}${other === open ? " is-chosen" : ""}`}
                  href={`/mail/${other}`}
                >
                  <div>
                    <div class="title">
                      <b>{nameOf(other)}</b>
                      <span class="where cut">{last ? (last.to === "human" ? "to you" : "from you") : "new"}</span>
                    </div>
                    <div class="now cut">{plain(firstLine(last?.body ?? ""))}</div>
                  </div>
                  <div class="aside">
                    {last && <Age at={last.sent} />}
                    {waits > 0 && <span class="badge">{waits}</span>}
                  </div>
                </a>
              );
            })}
            {box.before !== null && (
              <button class="btn quiet" type="button" onClick={more}>
                Earlier mail
              </button>
            )}
          </section>
          {open && <Thread key={open} other={open} thread={byOther.get(open) ?? []} />}
        </div>
      )}
    </>
  );
}

function Thread({ other, thread }: { other: string; thread: SeenMail[] }) {
  const [draft, setDraft] = useDraft(`mail:${other}`);
  const [sending, setSending] = useState(false);
  const send = async () => {
    if (draft.trim() === "" || sending) return;
    setSending(true);
    try {
      await api.sendMail(other, draft);
      setDraft("");
    } catch (problem) {
      notify(problem as Problem);
    }
    setSending(false);
  };
  return (
    <section aria-label={nameOf(other)}>
      <div class="section-head">
        <h2 class="thread-name">
          <a href={to.agent(other)}>{nameOf(other)}</a>
        </h2>
        <span class="faint small">
          {thread.length} {plural(thread.length, "mail")}
        </span>
      </div>
      {thread.map((letter) => (
        <article class={`msg${letter.from === "human" ? " is-human" : ""}`} key={letter.id}>
          <div class="by">
            <b>{nameOf(letter.from)}</b>
            <span>to {letter.to === "human" ? "you" : nameOf(letter.to)}</span>
            <time title={exact(letter.sent)}>{clockSeconds(letter.sent)}</time>
            {letter.to === "human" && letter.state !== "read" ? (
              <button
                class="btn line small-btn push"
                type="button"
                onClick={() => api.readMail(letter.id).catch((problem: Problem) => notify(problem))}
              >
                <Glyph as="done" silent /> Mark as read
              </button>
            ) : (
              <span class="push">{letter.state === "read" ? "read" : "waits to be read"}</span>
            )}
          </div>
          <div class="body prose said-by-you">{plain(letter.body)}</div>
        </article>
      ))}
      <form
        class="composer is-still"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <div class="box">
          <label class="sr" for="mail">
            Mail to {nameOf(other)}
          </label>
          <textarea
            id="mail"
            rows={2}
            placeholder={`Mail to ${nameOf(other)}`}
            value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) void send();
            }}
          />
          <div class="bar">
            <span>From you</span>
            <button class="btn you" type="submit" disabled={sending || draft.trim() === ""}>
              Send <kbd>⌘↵</kbd>
            </button>
          </div>
        </div>
      </form>
    </section>
  );
}
