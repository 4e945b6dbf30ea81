// The views that one can go to: their order, words and keys, and the list of them where all are shown.
import { Icon, type IconName } from "../ui/icon";

interface ViewEntry {
  path: string;
  name: string;
  icon: IconName;
  /** The letter that follows G. */
  key: string;
}

export const VIEWS: ViewEntry[] = [
  { path: "/", name: "Home", icon: "home", key: "H" },
  { path: "/quests", name: "Quests", icon: "quests", key: "Q" },
  { path: "/agents", name: "Agents", icon: "agents", key: "A" },
  { path: "/seats", name: "Seats", icon: "seats", key: "S" },
  { path: "/build", name: "Build", icon: "build", key: "B" },
  { path: "/mail", name: "Mail", icon: "mail", key: "M" },
  { path: "/log", name: "Log", icon: "log", key: "L" },
  { path: "/cost", name: "Cost", icon: "cost", key: "C" },
];

export function AllViews() {
  return (
    <ul class="nav is-large">
      {VIEWS.map((view) => (
        <li key={view.path}>
          <a href={view.path}>
            <Icon name={view.icon} />
            {view.name}
          </a>
        </li>
      ))}
    </ul>
  );
}
