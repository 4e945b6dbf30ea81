// The projects of this machine: where else somebody works, or waits for you.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { ProjectLine } from "../api/types";
import { store } from "../store/store";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { plural } from "../ui/words";

const LIST = "projects";

/** Opens the list. On a small screen the project's name is the button. */
export function ProjectButton({ name, children }: { name?: string; children?: ComponentChildren }) {
  const words = "All projects of this machine";
  return (
    <button
      class={children ? "project-btn" : "icon-btn"}
      type="button"
      popovertarget={LIST}
      aria-label={name ? `${name}. ${words}` : words}
      title={words}
    >
      {children}
      <Icon name="unfold" size={14} />
    </button>
  );
}

/** The daemons are asked each time the list is opened. Nothing asks them in between. */
export function Projects() {
  const [lines, setLines] = useState<ProjectLine[] | Problem | null>(null);
  return (
    <div
      id={LIST}
      class="projects"
      popover="auto"
      onToggle={(event) => {
        if ((event as unknown as ToggleEvent).newState === "open")
          api.projects().then((it) => setLines(it.projects), setLines);
      }}
    >
      <h2>Projects of this machine</h2>
      {lines === null && <p class="faint small">Asking their daemons …</p>}
      {lines instanceof Error && (
        <p class="refused">
          {lines.message} {lines.hint}
        </p>
      )}
      {Array.isArray(lines) && (
        <ul>
          {lines.map((line) => (
            <Line key={line.root} line={line} />
          ))}
        </ul>
      )}
    </div>
  );
}

function Line({ line }: { line: ProjectLine }) {
  const name = line.root.split("/").at(-1) || line.root;
  const here = line.root === store.state?.project;
  const words = !line.running
    ? line.silent
      ? "its daemon does not answer"
      : "no daemon runs"
    : [
        line.questions > 0 ? `${line.questions} ${plural(line.questions, "waits", "wait")} for you` : "",
        `${line.working} at work`,
      ]
        .filter(Boolean)
        .join(", ");
  const inside = (
    <>
      <Glyph
        as={line.questions > 0 ? "you" : line.working > 0 ? "working" : line.running ? "resting" : "pending"}
        silent
      />
      <span class="cut">
        <b>{name}</b>
        <span class="faint small block cut" title={line.root}>
          {words}
        </span>
      </span>
      {here && <span class="faint small">here</span>}
    </>
  );
  const help = line.silent
    ? `hatchery down --force in ${line.root} ends a daemon that hangs`
    : `hatchery open in ${line.root} starts it`;
  return (
    <li>
      {line.link && !here ? (
        <a href={line.link} target="_blank" rel="noreferrer">
          {inside}
        </a>
      ) : (
        <span class="is-still" title={line.running ? undefined : help}>
          {inside}
        </span>
      )}
    </li>
  );
}
