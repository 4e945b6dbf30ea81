// Notifications: off until somebody says yes, and only for what needs the human while nobody looks.
import { useEffect, useState } from "preact/hooks";
import { type Need, needs } from "../store/needs";
import { store } from "../store/store";
import { questionWords } from "../ui/ask";
import { nameOf, projectName } from "../ui/names";
import { remember, remembered } from "./drafts";
import { go } from "./router";

/** What comes within this time is announced together. */
const GATHER_MS = 10_000;
const ASKED = "asked-to-notify";

const known = new Set<string>();
const open = new Map<string, Notification>();
let gathering: ReturnType<typeof setTimeout> | undefined;
let fresh: Need[] = [];

function look(): void {
  const now = needs(store);
  const keys = new Set(now.map((need) => need.key));
  for (const [key, notice] of open) {
    if (keys.has(key)) continue;
    notice.close();
    open.delete(key);
  }
  const first = known.size === 0;
  for (const need of now) {
    if (known.has(need.key)) continue;
    known.add(need.key);
    if (!first || document.hidden) fresh.push(need);
  }
  if (fresh.length === 0 || gathering) return;
  gathering = setTimeout(
    () => {
      gathering = undefined;
      const wanted = fresh.filter((need) => needs(store).some((it) => it.key === need.key));
      fresh = [];
      if (wanted.length > 0) announce(wanted);
    },
    document.hidden ? GATHER_MS / 10 : GATHER_MS,
  );
}

function announce(wanted: Need[]): void {
  if (!document.hidden || typeof Notification === "undefined" || Notification.permission !== "granted") return;
  const one = wanted.length === 1 ? wanted[0] : undefined;
  const title = one
    ? one.kind === "question"
      ? `${nameOf(one.question.agent)} needs you`
      : `${one.step.id} failed`
    : `${wanted.length} need you`;
  const body = one?.kind === "question" ? questionWords(one.question) : projectName();
  const notice = new Notification(title, { body, tag: one?.key ?? "several", silent: true });
  notice.onclick = () => {
    focus();
    go(one?.kind === "question" ? `/#ask-${one.question.id}` : "/");
    notice.close();
  };
  for (const need of wanted) open.set(need.key, notice);
}

export function watchNeeds(): void {
  store.on(["questions", "quests", "all"], look);
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
