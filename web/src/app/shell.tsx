// The frame around every view: where one can go, how it stands, and whether the daemon is there.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { SILENT_MS } from "../api/feed";
import { needs } from "../store/needs";
import { store, useTopics } from "../store/store";
import { Glyph, type Standing } from "../ui/glyph";
import { Egg, Icon } from "../ui/icon";
import { FIND } from "../ui/key_names";
import { nameOf, projectName } from "../ui/names";
import { isPlanned } from "../ui/steps";
import { useClock } from "../ui/time";
import { clockSeconds, group, plain } from "../ui/words";
import { confirm } from "./dialogs";
import { remember } from "./drafts";
import { palette } from "./palette_state";
import { ProjectButton, Projects } from "./projects";
import { to, usePlace } from "./router";
import { VIEWS } from "./views";

const TABS = ["Home", "Quests", "Agents", "Log"];

function isAt(path: string, view: string): boolean {
  return view === "/" ? path === "/" : path === view || path.startsWith(`${view}/`);
}

export function switchTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  remember("theme", root.dataset.theme);
}

export function Shell({ children }: { children: ComponentChildren }) {
  const { path } = usePlace();
  useTopics("questions", "quests", "mail");
  const waiting = needs(store).length;
  const project = projectName();
  useTitle(path, waiting, project);
  const talks = path.startsWith("/agents/");
  return (
    <div class={`shell${talks ? " talks" : ""}`}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <nav class="side" aria-label="Views">
        <div class="brand">
          <a href="/">
            <Egg />
            <span class="cut">{project}</span>
          </a>
          <ProjectButton />
        </div>
        <button class="find" type="button" aria-haspopup="dialog" onClick={() => palette.set({ text: "" })}>
          <span>Find or do …</span>
          <kbd>{FIND}</kbd>
        </button>
        <ul class="nav">
          {VIEWS.map((view) => (
            <li key={view.path}>
              <a href={view.path} aria-current={isAt(path, view.path) ? "page" : undefined}>
                <Icon name={view.icon} />
                {view.name}
                <Tail name={view.name} waiting={waiting} />
              </a>
            </li>
          ))}
        </ul>
        <OpenQuests />
        <Foot />
      </nav>
      <header class="topbar">
        <ProjectButton name={project}>
          <Egg />
          <span class="cut">{project}</span>
        </ProjectButton>
        <LiveWord />
        <button
          class="icon-btn"
          type="button"
          aria-label="Find or do something"
          onClick={() => palette.set({ text: "" })}
        >
          <Icon name="find" size={18} />
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <Banner />
        {children}
      </main>
      <nav class="tabs" aria-label="Views, small screen">
        {VIEWS.filter((view) => TABS.includes(view.name)).map((view) => (
          <a key={view.path} href={view.path} aria-current={isAt(path, view.path) ? "page" : undefined}>
            <Icon name={view.icon} size={20} />
            {view.name}
            {view.name === "Home" && waiting > 0 && <span class="badge">{waiting}</span>}
          </a>
        ))}
        <a href="/keys" aria-current={path === "/keys" ? "page" : undefined}>
          <Icon name="more" size={20} />
          More
        </a>
      </nav>
      <Projects />
      <Announcer />
    </div>
  );
}

function Tail({ name, waiting }: { name: string; waiting: number }) {
  const mail = store.state?.mail.size ?? 0;
  if (name === "Home" && waiting > 0)
    return (
      <span class="badge" role="img" aria-label={`${waiting} need you`}>
        {waiting}
      </span>
    );
  if (name === "Mail" && mail > 0) return <span class="tail">{mail}</span>;
  return null;
}

function OpenQuests() {
  useTopics("quests");
  const lines = [...(store.state?.quests.values() ?? [])].filter(
    (line) => line.state === "open" || line.state === "paused",
  );
  if (lines.length === 0) return null;
  return (
    <>
      <h2 class="side-head">Open quests</h2>
      <ul class="nav">
        {lines.slice(-8).map((line) => {
          const standing: Standing =
            line.questions > 0
              ? "you"
              : line.state === "paused"
                ? "parked"
                : line.failed > 0 && line.running === 0
                  ? "failed"
                  : "working";
          return (
            <li key={line.id}>
              <a href={to.quest(line.id)} title={line.request}>
                <Glyph as={standing} />
                <span class="cut">{line.request}</span>
                <span class="tail">
                  {line.steps > 0 && !isPlanned(store.quest(line.id)) ? `${line.complete}/${line.steps}` : "plan"}
                </span>
              </a>
            </li>
          );
        })}
      </ul>
    </>
  );
}

function useAway(): boolean {
  useTopics("connection");
  const broken = store.connection.brokenSince;
  const away = useClock(
    (store.connection.live || broken === null ? sayHere : sayAway(broken)) as (now: number) => string,
  );
  return away === "away";
}

const sayHere = () => "here";
const sayings = new Map<number, () => string>();
function sayAway(since: number): () => string {
  let say = sayings.get(since);
  if (!say) {
    say = () => (Date.now() - since >= SILENT_MS ? "away" : "here");
    sayings.clear();
    sayings.set(since, say);
  }
  return say;
}

function LiveWord() {
  const away = useAway();
  return (
    <span class="status">
      <span class={`live${away ? " is-off" : ""}`} aria-hidden="true" />
      {away ? "Away" : "Live"}
    </span>
  );
}

function Foot() {
  useTopics("log", "connection");
  const away = useAway();
  const counters = store.feed?.counters;
  const lost =
    counters && import.meta.env.DEV && counters.filled + counters.doubled > 0
      ? ` · ${counters.filled} filled, ${counters.doubled} doubled`
      : "";
  return (
    <div class="side-foot">
      <span class={`live${away ? " is-off" : ""}`} aria-hidden="true" />
      <span class="num cut">
        {away ? "Away" : "Live"}{" "}
        <span class="faint">
          · event {group(store.state?.head ?? 0)}
          {lost}
        </span>
      </span>
      <button class="icon-btn" type="button" aria-label="Switch between light and dark" onClick={switchTheme}>
        <Icon name="theme" />
      </button>
    </div>
  );
}

function Banner() {
  const away = useAway();
  const next = useClock(sayNext);
  const { trouble } = store.connection;
  if (trouble && !away) {
    return (
      <div class="banner is-parked" role="status">
        <Glyph as="parked" silent />
        <span class="text">
          <b>The store is in trouble: {plain(trouble).replace(/\.$/, "")}.</b> Nothing new is taken on until that is
          mended. Nothing that was acknowledged is lost.
        </span>
        <button class="btn line small-btn" type="button" onClick={() => tellWhatToDo(trouble)}>
          What to do
        </button>
      </div>
    );
  }
  if (!away) return null;
  return (
    <div class="banner" role="status">
      <span class="live is-off" aria-hidden="true" />
      <span class="text">
        <b>The daemon is away.</b> What you see is from {clockSeconds(store.connection.brokenSince ?? Date.now())}.
        Agents go on without it, and nothing that they say is lost.
      </span>
      <span class="end small muted num">{next}</span>
      <button class="btn line small-btn" type="button" onClick={() => store.feed?.start()}>
        Try now
      </button>
    </div>
  );
}

/** The daemon tries again by itself, so that nothing is left to do here when the cause is gone. */
function tellWhatToDo(trouble: string): void {
  confirm({
    title: "What to do",
    words: `The store says: ${plain(trouble).replace(/\.$/, "")}. Remove the cause: make room on the disk, or bring the database back. The daemon tries again by itself, and goes on as soon as it can write; agents that run lose nothing meanwhile. In the terminal, “hatchery doctor” looks at the store and at the disk.`,
    keep: "Close",
    choices: [],
  });
}

function sayNext(): string {
  const next = store.connection.nextTry;
  return next === null ? "" : `again in ${Math.max(1, Math.ceil((next - Date.now()) / 1000))} s`;
}

function useTitle(path: string, waiting: number, project: string): void {
  useEffect(() => {
    const view = VIEWS.find((it) => isAt(path, it.path))?.name ?? (isAt(path, "/keys") ? "Keys" : "No such page");
    document.title =
      waiting > 0 ? `${waiting} need${waiting === 1 ? "s" : ""} you · ${project}` : `${project} · ${view}`;
    const app = navigator as Navigator & {
      setAppBadge?: (n: number) => Promise<void>;
      clearAppBadge?: () => Promise<void>;
    };
    if (waiting > 0) app.setAppBadge?.(waiting).catch(() => {});
    else app.clearAppBadge?.().catch(() => {});
  }, [path, waiting, project]);
}

/** Says who needs somebody, once and politely. That there are fewer needs than before is said by nobody. */
function Announcer() {
  useTopics("questions", "quests");
  const known = useRef<Set<string> | null>(null);
  const [words, setWords] = useState("");
  const now = needs(store);
  const keys = now.map((need) => need.key).join(" ");
  const loaded = store.state !== null;
  useEffect(() => {
    if (!loaded) return;
    const fresh = now.filter((need) => !known.current?.has(need.key));
    known.current = new Set(now.map((need) => need.key));
    const [first] = fresh;
    if (fresh.length > 1) setWords(`${fresh.length} need you`);
    else if (first)
      setWords(first.kind === "failed" ? `${first.step.id} failed` : `${nameOf(first.question.agent)} needs you`);
    else if (now.length === 0) setWords("");
  }, [keys, loaded]);
  return (
    <div class="sr" role="status" aria-live="polite" aria-label="Needs you">
      {words}
    </div>
  );
}
