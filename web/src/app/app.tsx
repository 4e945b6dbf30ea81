// Which view is shown. All but Home come after the first paint: when they are needed, or while nothing else goes on.
import type { ComponentType } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { store, useTopics } from "../store/store";
import { loadLayout } from "../ui/step_layout";
import { Home, Loading } from "../views/home";
import { Dialogs } from "./dialogs";
import { remember, remembered } from "./drafts";
import { Nowhere } from "./nowhere";
import { Palette } from "./palette";
import { usePlace } from "./router";
import { Shell } from "./shell";

type View = ComponentType<{ parts: string[] }>;

interface Entry {
  load: () => Promise<{ default: View }>;
  /** How many parts an address of this view has at most. */
  parts: number;
}

const LAZY: Record<string, Entry> = {
  quests: { load: () => import("../views/quests"), parts: 3 },
  agents: { load: () => import("../views/agents"), parts: 2 },
  seats: { load: () => import("../views/seats"), parts: 1 },
  build: { load: () => import("../views/build"), parts: 1 },
  mail: { load: () => import("../views/mail"), parts: 3 },
  log: { load: () => import("../views/log"), parts: 1 },
  cost: { load: () => import("../views/cost"), parts: 1 },
  keys: { load: () => import("../views/keys"), parts: 1 },
};

const loaded = new Map<string, View>();

async function loadView(name: string): Promise<void> {
  const view = await LAZY[name]?.load();
  if (view) loaded.set(name, view.default);
}

/** Brings the other views while nothing else goes on, so that each can be opened when the daemon is away. */
function useAllViews(): void {
  const ready = store.state !== null;
  useEffect(() => {
    if (!ready) return;
    return whenIdle(async () => {
      for (const name of Object.keys(LAZY)) await loadView(name).catch(() => {});
      await loadLayout().catch(() => {});
    });
  }, [ready]);
}

/** Safari has no idle callback. */
function whenIdle(act: () => void): () => void {
  if (typeof requestIdleCallback === "function") {
    const id = requestIdleCallback(act, { timeout: 5000 });
    return () => cancelIdleCallback(id);
  }
  const id = setTimeout(act, 1000);
  return () => clearTimeout(id);
}

function Lazy({ name, parts }: { name: string; parts: string[] }) {
  const [, again] = useReducer<number, void>((n) => n + 1, 0);
  const [failed, setFailed] = useState<string | null>(null);
  const entry = LAZY[name];
  const view = loaded.get(name);
  useEffect(() => {
    if (!view)
      loadView(name).then(
        () => again(),
        () => setFailed(name),
      );
  }, [name, view]);
  if (!entry || parts.length > entry.parts) return <Nowhere />;
  if (view) {
    const View = view;
    return <View parts={parts} />;
  }
  if (failed === name) return <NotLoaded />;
  return <Loading />;
}

/** How long the page is not loaded anew by itself after it was. */
const RELOAD_MS = 30_000;

/**
 * A browser that could not load a script does not try that script again until the page is loaded anew. That also brings the scripts
 * of a daemon that was updated under the page. Drafts survive it.
 */
function NotLoaded() {
  useTopics("connection");
  const { live } = store.connection;
  useEffect(() => {
    const last = Number(remembered("loaded-anew") ?? 0);
    if (!live || Date.now() - last < RELOAD_MS) return;
    const now = String(Date.now());
    remember("loaded-anew", now);
    // Where nothing can be remembered, it would go on for ever.
    if (remembered("loaded-anew") === now) location.reload();
  }, [live]);
  return (
    <div class="empty" role="status">
      <h1>This view could not be loaded</h1>
      <p>
        {live
          ? "The daemon is there, but this part of the page did not come. Load the page anew; what you have typed is kept."
          : "The daemon is away. The view comes by itself when the daemon is back; the other views stay readable."}
      </p>
      <div class="actions">
        <button class="btn line" type="button" onClick={() => location.reload()}>
          Load the page anew
        </button>
      </div>
    </div>
  );
}

/** When the focused element has left with its view, the focus goes to the content and not to the beginning of the document. */
function useFocusInContent(path: string): void {
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    const timer = setTimeout(() => {
      if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
    }, 50);
    return () => clearTimeout(timer);
  }, [path]);
}

export function App() {
  const { path, parts } = usePlace();
  useFocusInContent(path);
  useTopics();
  useAllViews();
  if (!store.state && store.problem) return <Locked />;
  return (
    <>
      <Shell>{parts.length === 0 ? <Home /> : <Lazy name={parts[0] ?? ""} parts={parts} />}</Shell>
      <Dialogs />
      <Palette />
    </>
  );
}

function Locked() {
  const problem = store.problem;
  return (
    <main class="locked">
      <h1>{problem?.status === 401 ? "This page needs the project’s token" : "The daemon does not answer"}</h1>
      <p class="sub">
        {problem?.status === 401 ? (
          <>
            Open the link that <code>hatchery up</code> or <code>hatchery status</code> prints.
          </>
        ) : (
          `${problem?.message ?? ""} ${problem?.hint ?? ""}`
        )}
      </p>
    </main>
  );
}
