// What the roles of the built-in table do, in the words of the command line. A test compares them with the core's.
const DUTIES: Readonly<Record<string, string>> = {
  chaoswhisperer: "writes the requirements",
  pathseeker: "plans the steps",
  codeweaver: "implements",
  siegemaster: "tries to break it",
  lawbringer: "reviews",
  spiritmender: "repairs",
};

/** The duty of a role. A role of the project's own has a name that its people know. */
export function dutyOf(role: string): string | null {
  return Object.hasOwn(DUTIES, role) ? (DUTIES[role] ?? null) : null;
}

/** A role as people see it: its name, and what it does. */
export function titled(role: string): string {
  const duty = dutyOf(role);
  return duty ? `${role} (${duty})` : role;
}

/** What a step does begins with the role that does it, if one does. */
export function withDuty(doing: string): string {
  return doing.replace(/^[^ ,]+/, titled);
}
