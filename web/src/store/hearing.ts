// Which messages an agent has not heard yet. The core knows what each process has heard, and nobody finds it out a second time here:
// a message that comes is asked about, and an event that says which message was heard ends its wait at once.

/** What the daemon says of a message: whether it waits to be heard. Nothing if it could not be asked. */
export type AskHearing = (message: number) => Promise<boolean | null>;

export class Hearing {
  /** Whether each message waits. Once it is heard, it stays heard, whatever an answer says that was on its way. */
  private readonly waits = new Map<number, boolean>();

  constructor(
    private readonly ask: AskHearing,
    private readonly changed: (message: number, unheard: boolean) => void,
  ) {}

  /** Whether a message waits, if that is known. */
  of(message: number): boolean | undefined {
    return this.waits.get(message);
  }

  /** A message came. Most agents that run hear it later, so it counts as unheard until the answer is there. */
  said(message: number, likely: boolean): void {
    if (likely) this.note(message, true);
    this.look(message);
  }

  /** The history was read, maybe before what was heard meanwhile. */
  read(messages: { id: number; unheard?: boolean }[], heardMeanwhile: boolean): void {
    for (const { id, unheard } of messages) {
      if (!unheard) continue;
      this.note(id, true);
      if (heardMeanwhile) this.look(id);
    }
  }

  /** A process has heard something. One that is new hears all that was said before its run in one piece, by the number of the run. */
  heard(what: number): void {
    const waiting = [...this.waits].filter(([, unheard]) => unheard).map(([message]) => message);
    this.note(what, false);
    if (!waiting.includes(what)) for (const message of waiting) this.look(message);
  }

  private look(message: number): void {
    void this.ask(message).then((unheard) => {
      if (unheard !== null) this.note(message, unheard);
    });
  }

  private note(message: number, unheard: boolean): void {
    const before = this.waits.get(message);
    if (before === false || before === unheard) return;
    this.waits.set(message, unheard);
    this.changed(message, unheard);
  }
}
