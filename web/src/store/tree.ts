// Forks as a graph: who comes from whom, on which lane each is drawn. The newest is on top.
import type { AgentView } from "../api/types";

export type Node =
  | { kind: "agent"; id: string; view: AgentView }
  | { kind: "point"; id: string; of: string; at: number; children: string[] }
  | { kind: "quest"; id: string; agents: number };

export interface Row {
  node: Node;
  lane: number;
}

export interface Edge {
  from: number;
  to: number;
  fromLane: number;
  toLane: number;
  dead: boolean;
  child: string;
}

export interface Tree {
  rows: Row[];
  edges: Edge[];
  lanes: number;
}

interface Placed {
  node: Node;
  parent: string | null;
  order: number;
  dead: boolean;
}

/** `order` of an agent is the event or time of its birth; a point stands right below its oldest child. */
export function treeOf(agents: AgentView[], quests: Map<string, { created: number; agents: number }>): Tree {
  const own = agents.filter((view) => !view.assignment);
  const shown = new Set(own.map((view) => view.id));
  const placed = new Map<string, Placed>();
  const root = own.find((view) => !view.parent);
  for (const view of own) {
    placed.set(view.id, {
      node: { kind: "agent", id: view.id, view },
      parent: above(view, shown, root?.id),
      order: view.created,
      dead: view.state === "dead",
    });
  }
  const points = new Map<string, string[]>();
  for (const view of own) {
    if (!view.forkedFrom || !view.forkPoint || !shown.has(view.forkedFrom)) continue;
    const key = `${view.forkedFrom}#${view.forkPoint}`;
    points.set(key, [...(points.get(key) ?? []), view.id]);
  }
  for (const [key, children] of points) {
    const [of = "", at = "0"] = key.split("#");
    const oldest = Math.min(...children.map((child) => placed.get(child)?.order ?? 0));
    placed.set(key, {
      node: { kind: "point", id: key, of, at: Number(at), children },
      parent: of,
      order: oldest - 0.5,
      dead: false,
    });
    for (const child of children) {
      const it = placed.get(child);
      if (it) it.parent = key;
    }
  }
  for (const [id, quest] of quests) {
    placed.set(id, {
      node: { kind: "quest", id, agents: quest.agents },
      parent: root?.id ?? null,
      order: quest.created,
      dead: false,
    });
  }
  return draw(inOrder(placed));
}

function above(view: AgentView, shown: Set<string>, root: string | undefined): string | null {
  if (view.forkedFrom && shown.has(view.forkedFrom)) return view.forkedFrom;
  if (view.parent && shown.has(view.parent)) return view.parent;
  return view.id === root ? null : (root ?? null);
}

/** The newest first, and nobody above a child of its own. */
function inOrder(placed: Map<string, Placed>): Placed[] {
  const list = [...placed.values()].sort((a, b) => b.order - a.order);
  const waits = new Map<string, number>();
  for (const it of list) if (it.parent) waits.set(it.parent, (waits.get(it.parent) ?? 0) + 1);
  const out: Placed[] = [];
  const done = new Set<string>();
  // A parent whose clock is later than its child's waits until its children are placed.
  const put = (it: Placed) => {
    if (done.has(it.node.id) || (waits.get(it.node.id) ?? 0) > 0) return;
    done.add(it.node.id);
    out.push(it);
    if (!it.parent) return;
    waits.set(it.parent, (waits.get(it.parent) ?? 1) - 1);
    const parent = placed.get(it.parent);
    if (parent && parent.order > it.order) put(parent);
  };
  for (let before = -1; before !== out.length; ) {
    before = out.length;
    for (const it of list) put(it);
  }
  return out;
}

/**
 * The first lane is agent 0's. Quests, and agents of its own from which nobody was forked, are stops on it: with a lane for each of
 * them, there would soon be no room for their names. Forks have lanes, which come together there at the bottom.
 */
function draw(list: Placed[]): Tree {
  const root = list.find((it) => it.parent === null)?.node.id ?? "";
  const lanes: (string | null)[] = [root];
  const rows: Row[] = [];
  const open: { child: number; lane: number; parent: string; dead: boolean; id: string }[] = [];
  const edges: Edge[] = [];
  const parents = new Set(list.map((it) => it.parent));
  let most = 1;
  list.forEach((it, row) => {
    const id = it.node.id;
    if (it.node.kind === "quest" || (it.parent === root && !parents.has(id))) {
      rows.push({ node: it.node, lane: 0 });
      open.push({ child: row, lane: 0, parent: root, dead: false, id });
      return;
    }
    let lane = id === root ? 0 : lanes.indexOf(id, 1);
    if (lane < 0) lane = lanes.indexOf(null, 1);
    if (lane < 0) lane = lanes.length;
    for (const edge of open.filter((edge) => edge.parent === id)) {
      edges.push({ from: edge.child, to: row, fromLane: edge.lane, toLane: lane, dead: edge.dead, child: edge.id });
    }
    for (let at = 1; at < lanes.length; at += 1) if (lanes[at] === id) lanes[at] = null;
    if (lane > 0) lanes[lane] = it.parent;
    if (it.parent) open.push({ child: row, lane, parent: it.parent, dead: it.dead, id });
    rows.push({ node: it.node, lane });
    most = Math.max(most, lane + 1);
  });
  return { rows, edges, lanes: most };
}
