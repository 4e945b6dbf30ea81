// Which view is shown. All but Home come when they are needed.
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { store, useTopics } from "../store/store";
import { Home, Loading } from "../views/home";
import { Dialogs } from "./dialogs";
import { Palette } from "./palette";
import { usePlace } from "./router";
import { Shell } from "./shell";

type View = ComponentType<{ parts: string[] }>;

const LAZY: Record<string, () => Promise<{ default: View }>> = {
  quests: () => import("../views/quests"),
  agents: () => import("../views/agents"),
  seats: () => import("../views/seats"),
  build: () => import("../views/build"),
  mail: () => import("../views/mail"),
  log: () => import("../views/log"),
  cost: () => import("../views/cost"),
  keys: () => import("../views/keys"),
};

const loaded = new Map<string, View>();

function Lazy({ name, parts }: { name: string; parts: string[] }) {
  const [, again] = useState(0);
  const view = loaded.get(name);
  useEffect(() => {
    const load = LAZY[name];
    if (view || !load) return;
    load().then(({ default: it }) => {
      loaded.set(name, it);
      again((n) => n + 1);
    });
  }, [name, view]);
  if (!LAZY[name]) return <Nowhere />;
  if (!view) return <Loading />;
  const View = view;
  return <View parts={parts} />;
}

function Nowhere() {
  return (
    <div class="empty">
      <h1>There is nothing here</h1>
      <p>This address belongs to no view.</p>
      <div class="actions">
        <a class="btn line" href="/">
          Go home
        </a>
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
