// A daemon of our own on a temporary project, with scripted agents. Everything it starts ends with it.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const program = process.env.HATCHERY_BIN;
if (!program) throw new Error("HATCHERY_BIN names the program to test; `cargo xtask test` sets it");

/** What children of ours may know: no settings, no keys, and a home of their own. */
function environment(home) {
  return { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8", HATCHERY_LOG: "error", GIT_CONFIG_NOSYSTEM: "1" };
}

export class Daemon {
  /** With a neighbour both belong to the same user: one home. */
  static async start(name = "parcel-api", files = {}, neighbour = undefined) {
    const folder = mkdtempSync(join(tmpdir(), "hatchery-page-"));
    const root = join(folder, name);
    const home = neighbour?.home ?? join(folder, "home");
    mkdirSync(home, { recursive: true });
    const daemon = new Daemon(folder, root, home);
    daemon.write("README.md", `# ${name}\n`);
    for (const [path, content] of Object.entries(files)) daemon.write(path, content);
    daemon.write(".hatchery/.gitignore", "*\n");
    for (const args of [
      ["init", "--quiet"],
      ["add", "."],
      ["commit", "--quiet", "-m", "The beginning"],
    ]) {
      const git = [
        "-c",
        "user.name=Hatchery",
        "-c",
        "user.email=hatchery@localhost",
        "-c",
        "commit.gpgsign=false",
        ...args,
      ];
      execFileSync("git", git, { cwd: root, env: environment(home) });
    }
    await daemon.up();
    return daemon;
  }

  constructor(folder, root, home) {
    Object.assign(this, { folder, root, home, port: 0 });
  }

  write(path, content) {
    const full = join(this.root, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
    return full;
  }

  /** A script for an agent: each step as JSON on its line. Returns where it is. */
  script(name, steps) {
    return this.write(`.hatchery/scripts/${name}.jsonl`, `${steps.map((step) => JSON.stringify(step)).join("\n")}\n`);
  }

  async up() {
    const args = ["up", "--json", "--project", this.root];
    if (this.port) args.push("--port", String(this.port));
    this.child = spawn(program, args, { env: environment(this.home), stdio: ["ignore", "pipe", "inherit"] });
    const line = await new Promise((resolve, reject) => {
      let text = "";
      this.child.stdout.on("data", (data) => {
        text += data;
        if (text.includes("\n")) resolve(text.split("\n")[0]);
      });
      this.child.once("exit", (code) => reject(new Error(`the daemon ended with ${code}: ${text}`)));
    });
    const { url, token } = JSON.parse(line);
    this.url = url.replace(/\/$/, "");
    this.token = token;
    this.port = Number(new URL(url).port);
  }

  /** The link that a person would open. */
  get link() {
    return `${this.url}/?token=${this.token}`;
  }

  async ended() {
    if (this.child.exitCode === null && this.child.signalCode === null)
      await new Promise((resolve) => this.child.once("exit", resolve));
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.ended();
  }

  async get(path) {
    return this.#ask(path, {});
  }

  async post(path, body = {}) {
    return this.#ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  async #ask(path, init) {
    const response = await fetch(this.url + path, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${this.token}` },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return text.startsWith("{") ? JSON.parse(text) : text;
  }

  /** Starts an agent that plays a script. */
  async run(name, steps, prompt = "Begin.", more = {}) {
    const script = this.script(name, steps);
    return (await this.post("/api/runs", { prompt, name, with: { harness: "scripted", script, ...more } })).id;
  }

  /** Follows the log until an event fits. */
  async until(fits, after = 0, patience = 60_000) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(new Error("it did not happen in time")), patience);
    try {
      const response = await fetch(`${this.url}/api/events?after=${after}`, {
        headers: { authorization: `Bearer ${this.token}` },
        signal: abort.signal,
      });
      let rest = "";
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        rest += chunk;
        const frames = rest.split("\n\n");
        rest = frames.pop();
        for (const frame of frames) {
          const data = frame.split("\n").find((line) => line.startsWith("data:"));
          if (!data) continue;
          const event = JSON.parse(data.slice(5));
          if (fits(event)) return event;
        }
      }
      throw new Error("the stream ended");
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
  }

  async stop() {
    try {
      execFileSync(program, ["--project", this.root, "stop", "--all"], {
        env: environment(this.home),
        stdio: "ignore",
        timeout: 20_000,
      });
    } catch {
      // Nobody ran, or the daemon is gone.
    }
    this.child.kill("SIGTERM");
    await this.ended();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

export const readText = (path) => readFileSync(path, "utf8");
