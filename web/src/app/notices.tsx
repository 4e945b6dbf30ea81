// Notifications: off until somebody says yes, and only for what needs the human while nobody looks.
import { useEffect, useState } from "preact/hooks";
import { type Need, needs } from "../store/needs";
import { store } from "../store/store";
import { questionWords } from "../ui/ask";
import { nameOf, projectName } from "../ui/names";
import { remember, remembered } from "./drafts";
import { go, to } from "./router";

/** What comes within this time is announced together: a later one takes the place of the notice before it. */
const GATHER_MS = 10_000;
/** What is settled within a moment is not announced at all. */
const SETTLE_MS = 1000;
const ASKED = "asked-to-notify";

/** What is announced: a need, or mail to the human. */
type News = { key: string; title: string; body: string; path: string };

const known = new Set<string>();
/** Notices that are shown, and what each one tells of. */
const shown = new Map<Notification, Set<string>>();
let looked = false;
let gathering: ReturnType<typeof setTimeout> | undefined;
let fresh: News[] = [];
/** The last notice, and what it tells. */
let last: { notice: Notification; news: News[]; at: number } | null = null;

function newsOf(need: Need): News {
  if (need.kind === "failed")
    return {
      key: need.key,
      title: `${need.step.id} failed`,
      body: need.request,
      path: to.quest(need.quest, need.step.id),
    };
  const { question } = need;
  const title = `${nameOf(question.agent)} needs you`;
  return { key: need.key, title, body: questionWords(question), path: `/#ask-${question.id}` };
}

function news(): News[] {
  const mail = [...(store.state?.mail ?? [])].map(([id, from]) => ({
    key: `m${id}`,
    title: `${nameOf(from)} wrote to you`,
    body: projectName(),
    path: `/mail/${from}`,
  }));
  return [...needs(store).filter(isStuck).map(newsOf), ...mail];
}

/** A failed step is announced when its quest has nothing else to do. A question waits for its answer in any case. */
function isStuck(need: Need): boolean {
  if (need.kind !== "failed") return true;
  const steps = store.quest(need.quest)?.steps ?? [];
  return !steps.some((step) => GOES_ON.has(step.status));
}

/** A step that goes on by itself. */
const GOES_ON: ReadonlySet<string> = new Set(["queued", "running", "waiting_for_role", "parked"]);

function look(): void {
  if (!store.state) return;
  const now = news();
  const keys = new Set(now.map((it) => it.key));
  // What is answered or read elsewhere is not announced any longer.
  for (const [notice, of] of shown) {
    for (const key of of) if (!keys.has(key)) of.delete(key);
    if (of.size > 0) continue;
    notice.close();
    shown.delete(notice);
  }
  const first = !looked;
  looked = true;
  for (const it of now) {
    if (known.has(it.key)) continue;
    known.add(it.key);
    // What was there before the page is told by the page itself.
    if (!first || document.hidden) fresh.push(it);
  }
  if (fresh.length === 0 || gathering) return;
  gathering = setTimeout(() => {
    gathering = undefined;
    const still = new Set(news().map((it) => it.key));
    const before = last && Date.now() - last.at < GATHER_MS && shown.has(last.notice) ? last.news : [];
    const wanted = fresh.filter((it) => still.has(it.key));
    fresh = [];
    if (wanted.length > 0) announce([...before.filter((it) => still.has(it.key)), ...wanted]);
  }, SETTLE_MS);
}

function announce(wanted: News[]): void {
  if (!document.hidden || typeof Notification === "undefined" || Notification.permission !== "granted") return;
  const one = wanted.length === 1 ? wanted[0] : undefined;
  // It tells of them, too.
  if (last && wanted.some((it) => last?.news.includes(it))) {
    last.notice.close();
    shown.delete(last.notice);
  }
  const notice = new Notification(one?.title ?? `${wanted.length} need you`, {
    body: one?.body ?? projectName(),
    tag: one?.key ?? "several",
    silent: true,
  });
  notice.onclick = () => {
    focus();
    go(one?.path ?? "/");
    notice.close();
  };
  shown.set(notice, new Set(wanted.map((it) => it.key)));
  last = { notice, news: wanted, at: Date.now() };
}

export function watchNeeds(): void {
  store.on(["questions", "quests", "mail", "all"], look);
}

/** Asked once, at the first question. */
export function AskToNotify({ waiting }: { waiting: number }) {
  const [answered, setAnswered] = useState(() => remembered(ASKED) !== null);
  const [can, setCan] = useState(false);
  useEffect(() => setCan(typeof Notification !== "undefined" && Notification.permission === "default"), []);
  if (answered || !can || waiting === 0) return null;
  const answer = (yes: boolean) => {
    remember(ASKED, yes ? "yes" : "no");
    setAnswered(true);
    if (yes) void Notification.requestPermission();
  };
  return (
    <div class="banner is-you">
      <span class="text">Tell you outside this tab when somebody needs you? Nothing else is ever announced.</span>
      <span class="end actions">
        <button class="btn line small-btn" type="button" onClick={() => answer(true)}>
          Yes, tell me
        </button>
        <button class="btn quiet small-btn" type="button" onClick={() => answer(false)}>
          No
        </button>
      </span>
    </div>
  );
}
