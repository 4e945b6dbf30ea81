// When this page was last looked at: what is done since then is new.
import { remember, remembered } from "./drafts";

const KEY = "looked";
let look = Number(remembered(KEY) ?? 0);

/** The moment before which everything was seen. Holds for as long as the page is looked at. */
export function lastLook(): number {
  return look;
}

export function watchLooks(now: () => number): void {
  const leave = () => remember(KEY, String(now()));
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) leave();
    else look = Number(remembered(KEY) ?? look);
  });
}
