// A build of the page in front of a daemon: files come from the folder, everything else from the daemon. So a release build of the
// program can be measured with a newer page, without a debugger between the browser and the network.
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer, request } from "node:http";
import { extname, join } from "node:path";

const TYPES = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html" };

/** Returns what `open` needs of a daemon. */
export async function front(daemon, folder) {
  const behind = new URL(daemon.url);
  const server = createServer((asked, answer) => {
    const { pathname, searchParams } = new URL(asked.url, daemon.url);
    if (!pathname.startsWith("/api/") && !searchParams.has("token")) {
      const file = join(folder, pathname);
      const found = pathname !== "/" && existsSync(file) && statSync(file).isFile() ? file : join(folder, "index.html");
      const age = pathname.startsWith("/assets/") ? "private, max-age=31536000, immutable" : "no-cache";
      answer.writeHead(200, { "content-type": TYPES[extname(found)] ?? "text/plain", "cache-control": age });
      createReadStream(found).pipe(answer);
      return;
    }
    const headers = { ...asked.headers, host: behind.host };
    if (headers.origin) headers.origin = daemon.url;
    const on = request({ host: behind.hostname, port: behind.port, method: asked.method, path: asked.url, headers });
    on.on("response", (got) => {
      answer.writeHead(got.statusCode, got.headers);
      answer.flushHeaders();
      got.pipe(answer);
    });
    on.on("error", () => answer.destroy());
    answer.on("close", () => on.destroy());
    asked.pipe(on);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, link: `${url}/?token=${daemon.token}`, close: () => server.closeAllConnections() ?? server.close() };
}
