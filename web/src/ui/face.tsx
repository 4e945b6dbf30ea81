// The face of an agent in a seat: an egg in its colour. Its gender chooses among the hair, its face variant the eyes and the mouth.
import type { JSX } from "preact";
import type { SeatView } from "../api/types";

const INK = "#1d1b18";
const EGG = "M48 8c22 0 38 31 38 56a38 38 0 0 1-76 0C10 39 26 8 48 8z";

/** Hair behind the head and over the brow. */
interface Hair {
  back?: string;
  front: string;
}

const HAIR: Record<"long" | "bob" | "bun" | "short" | "swept" | "curls", Hair> = {
  long: {
    back: "M48 1C17 1 3 37 5 71c1 17 5 25 11 29 4-15 3-31 8-45h48c5 14 4 30 8 45 6-4 10-12 11-29C93 37 79 1 48 1z",
    front: "M8 58C12 23 30 5 48 5s36 18 40 53c-11-8-18-17-22-30-13 15-37 24-58 30z",
  },
  bob: {
    back: "M48 1C19 1 5 30 5 59c0 13 5 21 13 23 3-11 4-21 8-30h44c4 9 5 19 8 30 8-2 13-10 13-23C91 30 77 1 48 1z",
    front: "M8 54C10 23 28 3 48 3s38 20 40 51c-17-8-63-8-80 0z",
  },
  bun: {
    back: "M48-7a13 13 0 1 1 0 27 13 13 0 0 1 0-27z",
    front: "M10 54C14 23 30 5 48 5s34 18 38 49C73 33 60 27 48 27s-25 6-38 27z",
  },
  short: { front: "M12 47C18 19 32 5 48 5s30 14 36 42c-9-12-21-17-36-17s-27 5-36 17z" },
  swept: { front: "M10 53C13 21 30 3 48 3s35 18 38 50c-4-10-11-17-19-19-13 5-32 3-41-4-8 6-13 13-16 23z" },
  curls: {
    front:
      "M10 54c-6-12-1-21 8-24-3-12 9-20 18-16 4-10 20-10 24-2 10-4 20 6 18 17 9 2 14 13 8 25-4-8-8-12-15-14-14 5-31 5-45 0-8 3-12 7-16 14z",
  },
};
type HairName = keyof typeof HAIR;
const FAMILIES: Record<string, HairName[]> = { woman: ["long", "bob", "bun"], man: ["short", "swept", "curls"] };
const ALL = Object.keys(HAIR) as HairName[];

/** The same words give the same face on every screen. */
function pick<T>(from: readonly T[], words: string): T {
  let sum = 7;
  for (const letter of words) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return from[sum % from.length] as T;
}

/** An agent chooses its colour; what is no colour is not drawn with. */
function safe(color: string | null | undefined): string {
  return color && !color.includes("(") && CSS.supports("color", color) ? color : "var(--edge)";
}

const EYES = ["standard", "round", "bright", "smiling", "glasses"] as const;
const MOUTHS = ["gentle", "smile", "open", "wry"] as const;

function Eyes({ as }: { as: (typeof EYES)[number] | "closed" }) {
  const pair = (draw: (x: number) => JSX.Element) => [34.5, 61.5].map(draw);
  switch (as) {
    case "closed":
      return <path class="line" d="M29 65c3 3 8 3 11 0M56 65c3 3 8 3 11 0" />;
    case "smiling":
      return <path class="line" d="M28 65c4-4 9-4 13 0M55 65c4-4 9-4 13 0" />;
    case "round":
      return (
        <>
          {pair((x) => (
            <g key={x}>
              <circle cx={x} cy={64} r={7} fill="#fff" />
              <circle cx={x + (x < 48 ? 1 : -1)} cy={64.5} r={3.6} fill={INK} />
            </g>
          ))}
        </>
      );
    case "bright":
      return (
        <>
          {pair((x) => (
            <g key={x}>
              <circle cx={x} cy={64} r={4.8} fill={INK} />
              <circle cx={x + 1.7} cy={62.2} r={1.5} fill="#fff" />
            </g>
          ))}
        </>
      );
    case "glasses":
      return (
        <>
          {pair((x) => (
            <g key={x}>
              <ellipse cx={x} cy={64} rx={3} ry={3.8} fill={INK} />
              <circle class="line" cx={x} cy={64} r={9.5} />
            </g>
          ))}
          <path class="line" d="M44 63c2.4-2 5.6-2 8 0" />
        </>
      );
    default:
      return (
        <>
          {pair((x) => (
            <ellipse key={x} cx={x} cy={64} rx={3.4} ry={4.4} fill={INK} />
          ))}
        </>
      );
  }
}

const MOUTH: Record<(typeof MOUTHS)[number], string> = {
  gentle: "M40 81c5 4 11 4 16 0",
  smile: "M36 79c6 8 18 8 24 0",
  open: "M39 79h18c0 7-4 10-9 10s-9-3-9-10z",
  wry: "M40 82c6 2 12 0 17-4",
};

const chosen = <T extends string>(from: readonly T[], word: string | undefined, name: string): T =>
  from.find((it) => it === word) ?? pick(from, word || name);

export function Face({ seat }: { seat: SeatView }) {
  const name = seat.name ?? String(seat.gridPosition);
  const color = safe(seat.color);
  const dark = `color-mix(in oklab, ${color} 46%, ${INK})`;
  const blush = `color-mix(in oklab, ${color} 70%, #e8543f)`;
  const hair = HAIR[pick(FAMILIES[seat.gender ?? ""] ?? ALL, name)];
  const asleep = seat.status === "sleeping";
  const mouth = chosen(MOUTHS, seat.faceVariant?.mouth, name);
  return (
    <svg class="face" viewBox="0 -8 96 116" aria-hidden="true">
      {hair.back && <path d={hair.back} fill={dark} />}
      <path d={EGG} fill={color} />
      <g fill={blush} opacity=".55">
        <circle cx="25" cy="76" r="7" />
        <circle cx="71" cy="76" r="7" />
      </g>
      <path d={hair.front} fill={dark} />
      <Eyes as={asleep ? "closed" : chosen(EYES, seat.faceVariant?.eyes, name)} />
      {asleep ? (
        <path class="line" d="M44 81c3 2 5 2 8 0" />
      ) : (
        <path class={mouth === "open" ? "solid" : "line"} d={MOUTH[mouth]} />
      )}
    </svg>
  );
}

const SPOTS = [
  [32, 44, 4],
  [58, 34, 3],
  [66, 56, 5],
  [40, 74, 3.4],
  [25, 64, 2.6],
  [55, 87, 4],
] as const;

/** An agent that has not chosen its name yet. */
export function HatchingEgg({ color: given }: { color: string | null | undefined }) {
  const color = safe(given);
  return (
    <svg class="face" viewBox="0 -8 96 116" aria-hidden="true">
      <g class="egg">
        <path d={EGG} fill={`color-mix(in oklab, ${color} 58%, #fffdf6)`} />
        {SPOTS.map(([x, y, r]) => (
          <ellipse key={x} cx={x} cy={y} rx={r} ry={r * 1.15} fill={color} />
        ))}
        <path class="crack" d="M11 62l10-6 9 9 9-10 10 10 10-9 9 8 9-6 8 6" />
      </g>
    </svg>
  );
}

/** Nobody sits here. */
export function EmptyEgg() {
  return (
    <svg class="face" viewBox="0 -8 96 116" aria-hidden="true">
      <path class="empty-egg" d={EGG} />
    </svg>
  );
}
