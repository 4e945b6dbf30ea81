// Where each step of a quest is drawn, from what it depends on.
import type { StepDocument } from "../api/types";

export const WIDE = 220;
export const HIGH = 72;

export interface Layout {
  width: number;
  height: number;
  at: Map<string, { x: number; y: number }>;
}

/** The library comes when it is needed: the first paint does without. */
export const loadLayout = () => import("@dagrejs/dagre");

export async function layOut(steps: StepDocument[]): Promise<Layout> {
  const { graphlib, layout } = await loadLayout();
  const { Graph } = graphlib;
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 10, ranksep: 44, marginx: 0, marginy: 0 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const step of steps) graph.setNode(step.id, { width: WIDE, height: HIGH });
  for (const step of steps) for (const on of step.dependsOn) if (graph.hasNode(on)) graph.setEdge(on, step.id);
  layout(graph);
  const at = new Map<string, { x: number; y: number }>();
  let [width, height] = [0, 0];
  for (const step of steps) {
    const node = graph.node(step.id) as { x: number; y: number };
    at.set(step.id, { x: node.x - WIDE / 2, y: node.y - HIGH / 2 });
    width = Math.max(width, node.x + WIDE / 2);
    height = Math.max(height, node.y + HIGH / 2);
  }
  // The plan's order runs downwards; where the layout has it upwards, it is the same layout in a mirror.
  const ordered = steps.map((step) => at.get(step.id)?.y ?? 0);
  const drift = ordered.reduce((sum, y, index) => sum + (index - (steps.length - 1) / 2) * y, 0);
  if (drift < 0) for (const place of at.values()) place.y = height - HIGH - place.y;
  return { width, height, at };
}
