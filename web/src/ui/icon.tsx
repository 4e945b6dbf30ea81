// Outlines of one weight for places and deeds. They are decoration: a word stands beside each.
const PATHS = {
  home: "M2.5 3.5h11v9h-11zM6.2 3.5v9M9.8 3.5v9",
  quests:
    "M5.2 8a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM14 4a1.6 1.6 0 1 1-3.2 0A1.6 1.6 0 0 1 14 4zM14 12a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM5.2 7.4l5.6-2.7M5.2 8.6l5.6 2.7",
  agents:
    "M6.1 3.2a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM6.1 12.8a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM13.1 6a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0zM4.5 4.8v6.4M11.5 7.6c0 2.4-7 1.4-7 3.6",
  seats:
    "M8 1.8c2.6 0 4.6 3.9 4.6 7A4.6 4.6 0 0 1 8 13.9a4.6 4.6 0 0 1-4.6-5.1c0-3.1 2-7 4.6-7zM6.2 8.4v.6M9.8 8.4v.6M6.6 11c.9.7 1.9.7 2.8 0",
  build: "M2.5 10.5h3v3h-3zM6.5 6.5h3v7h-3zM10.5 2.5h3v11h-3z",
  mail: "M2 3.8h12v8.4H2zM2.3 4.2L8 8.9l5.7-4.7",
  log: "M2.5 4h11M2.5 8h11M2.5 12h7",
  cost: "M2.5 13.5h11M4.2 11V8M8 11V3M11.8 11V5.6",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  find: "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.4 10.4l3.1 3.1",
  fork: "M6 3.4a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM13 3.4a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM6 12.6a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0zM4.5 4.9v6.2M11.5 4.9c0 3.4-7 1.9-7 5",
  theme: "M13.5 8a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0zM8 2.5v11M9.5 3v10M11 4v8M12.5 5.5v5",
  right: "M6 3.5L10.5 8 6 12.5",
  down: "M8 3v9.5M4 8.7l4 4 4-4",
  unfold: "M4.5 6L8 2.5 11.5 6M4.5 10L8 13.5l3.5-3.5",
  layers: "M8 2l6 3-6 3-6-3zM2.5 8.2L8 11l5.5-2.8M2.5 11.2L8 14l5.5-2.8",
  close: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13.2 2v3h-3",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width={size} height={size} aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The mark: an egg with a crack. */
export function Egg() {
  return (
    <svg class="egg-mark" width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <path
        class="shell-of-egg"
        d="M10 1.6c4 0 7.1 5.7 7.1 10.1A7.1 7.1 0 0 1 10 18.9a7.1 7.1 0 0 1-7.1-7.2C2.9 7.3 6 1.6 10 1.6z"
      />
      <path class="crack" d="M3 10.6l2.9 1.9 2.3-2.2 2.4 2.4 2.5-2.3 3.9 1.8" />
    </svg>
  );
}
