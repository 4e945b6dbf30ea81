// What an agent is writing: a text grows, of a thought the latest sentence is shown.
import { latestSentence, type Writing } from "../api/live_text";
import { Markdown } from "./markdown";
import { nameOf } from "./names";
import { Age } from "./time";

export function WritingNow({ agent, writing }: { agent: string; writing: Writing }) {
  if (writing.kind === "thinking")
    return (
      <p class="note is-writing">
        <span>
          thinks: <i>{latestSentence(writing.text)}</i> <Age at={writing.since} />
        </span>
      </p>
    );
  return (
    <article class="msg is-writing" aria-busy="true">
      <div class="by">
        <b>{nameOf(agent)}</b>
        <span>writes this now</span>
      </div>
      <Markdown text={writing.text} />
    </article>
  );
}
