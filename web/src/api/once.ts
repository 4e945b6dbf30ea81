// Requests that are carried out once, however often they are sent: each has an id, and the daemon answers a repeat as the first time.

/** How soon a request is sent again after its connection broke, in ms. Then the person is told, and decides. */
const PAUSES = [300, 1000, 3000];
/** Requests without an answer whose ids are kept, the latest ones. A person has one or two. */
const MAX_UNANSWERED = 100;

export interface Sender {
  send<T>(path: string, body: object): Promise<T>;
  drawId(): string;
  /** Whether an error leaves open whether the request was carried out. */
  isLost(problem: unknown): boolean;
  pause(ms: number): Promise<void>;
}

export class Once {
  /** The ids of requests that got no answer, by what they ask for. */
  private readonly unanswered = new Map<string, string>();

  constructor(private readonly sender: Sender) {}

  /** Sends a request, and sends it again when the connection breaks. If a person repeats what got no answer, it has the same id. */
  async post<T>(path: string, body: object): Promise<T> {
    const content = `${path}\n${JSON.stringify(body)}`;
    const id = this.unanswered.get(content) ?? this.sender.drawId();
    this.keep(content, id);
    for (let tries = 0; ; tries += 1) {
      try {
        const answer = await this.sender.send<T>(path, { ...body, id });
        this.unanswered.delete(content);
        return answer;
      } catch (problem) {
        const pause = PAUSES[tries];
        if (!this.sender.isLost(problem)) this.unanswered.delete(content);
        if (!this.sender.isLost(problem) || pause === undefined) throw problem;
        await this.sender.pause(pause);
      }
    }
  }

  private keep(content: string, id: string): void {
    this.unanswered.set(content, id);
    const [oldest] = this.unanswered.keys();
    if (this.unanswered.size > MAX_UNANSWERED && oldest !== undefined) this.unanswered.delete(oldest);
  }
}
