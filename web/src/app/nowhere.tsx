// An address that belongs to no view: what it was, and where one can go instead.
import { plain } from "../ui/words";
import { palette } from "./palette_state";
import { usePlace } from "./router";
import { AllViews } from "./views";

/** Addresses are written by anybody: more of one than this says nothing. */
const SHOWN = 120;

export function Nowhere() {
  const { path, parts } = usePlace();
  const wanted = parts.at(-1) ?? "";
  return (
    <>
      <header class="head">
        <div>
          <h1>There is no page at this address</h1>
          <p class="sub">
            <code>{plain(path).slice(0, SHOWN)}</code> belongs to no view. A part of the link may be missing. Nothing is
            lost: everything is reached from one of these.
          </p>
        </div>
      </header>
      <nav class="nowhere" aria-label="All views">
        <AllViews />
        <div class="actions">
          <button class="btn line" type="button" onClick={() => palette.set({ text: wanted.slice(0, SHOWN) })}>
            Find “{plain(wanted).slice(0, 40)}”
          </button>
        </div>
      </nav>
    </>
  );
}
