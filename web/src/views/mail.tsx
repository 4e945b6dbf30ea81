// Mail: is something for me?
import { useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
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

interface Letter {
  id: number;
  from: string;
  to: string;
  sent: number;
  body: string;
  read: boolean;
}

/** Bodies that were looked at, by id: a mail's id is its event's. Looking is not reading. */
const letters = new Map<number, Letter>();

async function lookAt(id: number): Promise<void> {
  if (letters.has(id)) return;
  const { events } = await api.events(id - 1, 1);
  const event = events[0];
  if (event?.type === "mail_sent")
    letters.set(id, { id, from: event.from, to: event.to, sent: event.ts, body: event.body, read: false });
}

export default function Mail({ parts }: { parts: string[] }) {
  useTopics("mail", "agents");
  const [, again] = useState(0);
  const unread = [...(store.state?.mail.keys() ?? [])];
  const chosen = parts[1] ?? null;
  useEffect(() => {
    void Promise.all(unread.map(lookAt)).then(
      () => again((n) => n + 1),
      () => {},
    );
  }, [unread.join()]);
  useEffect(
    () =>
      store.tap((event) => {
        if (event.type !== "mail_sent" || (event.to !== "human" && event.from !== "human")) return;
        letters.set(event.id, {
          id: event.id,
          from: event.from,
          to: event.to,
          sent: event.ts,
          body: event.body,
          read: event.to !== "human",
        });
        again((n) => n + 1);
      }),
    [],
  );
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
  if (!store.state) return <Loading />;
  const threads = new Map<string, Letter[]>();
  for (const letter of [...letters.values()].sort((a, b) => a.id - b.id)) {
    const other = letter.from === "human" ? letter.to : letter.from;
    threads.set(other, [...(threads.get(other) ?? []), letter]);
  }
  if (chosen && !threads.has(chosen)) threads.set(chosen, []);
  const n = unread.length;
  const title =
    n === 0 ? "No mail for you is unread" : `${Count(n)} ${plural(n, "mail")} for you ${n === 1 ? "is" : "are"} unread`;
  const open = chosen ?? [...threads].sort((a, b) => (b[1].at(-1)?.id ?? 0) - (a[1].at(-1)?.id ?? 0))[0]?.[0] ?? null;
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
      {threads.size === 0 ? (
        <div class="empty">
          <h3>No mail yet</h3>
          <p>What agents write to you stands here, and so does what you write to them.</p>
        </div>
      ) : (
        <div class="mail-cols">
          <section aria-label="Threads">
            {[...threads]
              .sort((a, b) => (b[1].at(-1)?.id ?? 0) - (a[1].at(-1)?.id ?? 0))
              .map(([other, thread]) => {
                const last = thread.at(-1);
                const waits = thread.filter((it) => it.to === "human" && store.state?.mail.has(it.id)).length;
                return (
                  <a
                    key={other}
                    class={`row is-flat${waits > 0 ? " is-new" : ""}${other === open ? " is-chosen" : ""}`}
                    href={`/mail/${other}`}
                  >
                    <div>
                      <div class="title">
                        <b>{nameOf(other)}</b>
                        <span class="where cut">{last?.to === "human" ? "to you" : "from you"}</span>
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
          </section>
          {open && (
            <Thread key={open} other={open} thread={threads.get(open) ?? []} changed={() => again((it) => it + 1)} />
          )}
        </div>
      )}
    </>
  );
}

function Thread({ other, thread, changed }: { other: string; thread: Letter[]; changed: () => void }) {
  const [draft, setDraft] = useDraft(`mail:${other}`);
  const [sending, setSending] = useState(false);
  const read = (letter: Letter) =>
    api.readMail(letter.id).then(
      () => {
        letter.read = true;
        changed();
      },
      (problem: Problem) => notify(problem),
    );
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
            {letter.to === "human" && store.state?.mail.has(letter.id) && (
              <button class="btn line small-btn push" type="button" onClick={() => void read(letter)}>
                <Glyph as="done" silent /> Mark as read
              </button>
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
