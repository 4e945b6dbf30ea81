// All keys, and on a small screen the way to everything else.

import { openDialog } from "../app/dialogs";
import { switchTheme } from "../app/shell";
import { AllViews, VIEWS } from "../app/views";
import { FIND, SEND } from "../ui/key_names";

const KEYS: [string[], string][] = [
  [[FIND], "find or do anything"],
  [["A"], "answer the oldest"],
  [["E"], "next that needs you"],
  [["N"], "new quest"],
  [["J", "K"], "next, previous"],
  [["↵"], "open"],
  [["G"], `then ${VIEWS.map((view) => view.key).join(" ")}: go to a view`],
  [["S"], "say something"],
  [["F"], "fork, at the chosen message"],
  [["D"], "see the changes"],
  [["W"], "how we know"],
  [["L"], "its events in the log"],
  [["P"], "pause, resume"],
  [["R"], "retry step"],
  [["⇧I"], "interrupt"],
  [["X"], "stop"],
  [["#"], "go to an event, in the log"],
  [["C"], "new mail, in Mail"],
  [["1–9"], "choose a seat, in Seats"],
  [[SEND], "send"],
  [["esc"], "back, close"],
  [["?"], "all keys"],
];

export default function Keys() {
  return (
    <>
      <header class="head">
        <div>
          <h1>
            <span class="hide-small">All keys</span>
            <span class="only-small">Everything else</span>
          </h1>
          <p class="sub hide-small">
            Single letters work outside fields. Everything that a button does is in the palette, by the same words.
          </p>
        </div>
      </header>
      <section class="only-small" aria-label="Views">
        <AllViews />
        <div class="actions">
          <button class="btn line" type="button" onClick={() => openDialog("quest")}>
            New quest
          </button>
          <button class="btn line" type="button" onClick={() => openDialog("agent")}>
            New agent
          </button>
          <button class="btn line" type="button" onClick={switchTheme}>
            Light or dark
          </button>
        </div>
      </section>
      <section class="hide-small" aria-label="Keys">
        <ul class="keys">
          {KEYS.map(([keys, words]) => (
            <li key={words}>
              <span>
                {keys.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </span>
              <span class="muted">{words}</span>
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}
