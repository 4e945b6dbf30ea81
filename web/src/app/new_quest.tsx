// A new quest: what is wanted, and what will check it. The ward is shown before anything begins.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, drawId } from "../api/client";
import type { QuestDefaults } from "../api/types";
import { beginAfterTrial } from "../store/trials";
import { Glyph } from "../ui/glyph";
import { SEND } from "../ui/key_names";
import { plain } from "../ui/words";
import type { Parts } from "./dialogs";
import { useDraft } from "./drafts";
import { go, to } from "./router";

export function NewQuest({ request, act, close, sending }: { request: string } & Parts) {
  const [draft, setDraft] = useDraft("new-quest");
  const [text, setText] = useState(request || draft);
  const [usual, setUsual] = useState<QuestDefaults | null>(null);
  /** What the user has changed; the rest is as usual. */
  const [ward, setWard] = useState<string | null>(null);
  const [slots, setSlots] = useState<string | null>(null);
  const [ceiling, setCeiling] = useState("");
  const [approve, setApprove] = useState(true);
  const [id] = useState(drawId);
  useEffect(() => {
    // Without an answer the fields are empty, and the daemon takes what is usual.
    api.questDefaults().then(setUsual, () => {});
  }, []);
  const field = useRef<HTMLInputElement>(null);
  const begin = (later: boolean) =>
    act(async () => {
      // What stands in the field counts, also if it was typed a moment ago.
      const command = field.current?.value ?? ward ?? "";
      const usualWard = usual?.ward ?? "";
      await api.newQuest({
        id,
        request: text,
        approvePlan: approve,
        // Nothing begins before the ward was tried.
        hold: true,
        ...(Number(slots) > 0 ? { slots: Number(slots) } : {}),
        ...(command !== usualWard ? { ward: command } : {}),
        ...(ceiling.trim() ? { budget: ceiling.replace("$", "") } : {}),
      });
      setDraft("");
      if (!later) beginAfterTrial(id);
      go(to.quest(id));
    });
  const empty = text.trim() === "";
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void begin(false);
      }}
    >
      <h2 id="dialog-title">New quest</h2>
      <label class="labelled">
        What do you want to have?
        <textarea
          class="field"
          rows={3}
          value={text}
          required
          onInput={(event) => {
            setText(event.currentTarget.value);
            setDraft(event.currentTarget.value);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && !empty) void begin(false);
          }}
        />
      </label>
      <div>
        <label class="labelled">
          Ward, the command that checks the work
          <input
            ref={field}
            class="field code"
            value={ward ?? usual?.ward ?? ""}
            placeholder={usual ? "none" : "looking at the project …"}
            spellcheck={false}
            autocomplete="off"
            aria-describedby="about-ward"
            onInput={(event) => setWard(event.currentTarget.value)}
          />
        </label>
        <p class="faint small" id="about-ward">
          {wardWords(usual, ward)}
        </p>
      </div>
      <div class="two-fields">
        <label class="labelled">
          Slots, steps at the same time
          <input
            class="field"
            value={slots ?? usual?.slots ?? ""}
            inputMode="numeric"
            onInput={(event) => setSlots(event.currentTarget.value)}
          />
        </label>
        <label class="labelled">
          Ceiling, in dollars
          <input
            class="field"
            value={ceiling}
            placeholder="none"
            inputMode="decimal"
            onInput={(event) => setCeiling(event.currentTarget.value)}
          />
        </label>
      </div>
      <label class="check">
        <input type="checkbox" checked={approve} onChange={(event) => setApprove(event.currentTarget.checked)} />
        Ask me before the plan is carried out
      </label>
      {usual?.warning && (
        <p class="warned small">
          <Glyph as="parked" word="to know" />
          <span>{plain(usual.warning)}</span>
        </p>
      )}
      <div class="actions">
        <button class="btn" type="button" onClick={close}>
          Cancel
        </button>
        <button class="btn quiet" type="button" disabled={sending || empty} onClick={() => void begin(true)}>
          Save for later
        </button>
        <button class="btn you" type="submit" disabled={sending || empty}>
          Begin quest <kbd>{SEND}</kbd>
        </button>
      </div>
    </form>
  );
}

function wardWords(usual: QuestDefaults | null, ward: string | null): string {
  if (!usual) return " ";
  const command = ward ?? usual.ward ?? "";
  if (command.trim() === "")
    return usual.ward === null && ward === null
      ? "No file of the project says how it is checked. Without a ward nobody checks the work but the agents."
      : "Without a ward nobody checks the work but the agents.";
  const whence =
    command !== usual.ward
      ? ""
      : usual.guessedFrom
        ? `Guessed from ${usual.guessedFrom}. `
        : "From the settings of the project. ";
  return `${whence}It is tried once before the first agent starts.`;
}
