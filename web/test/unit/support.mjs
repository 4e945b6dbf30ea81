// Modules of the page, without a browser.
import { createServer } from "vite";

export async function page() {
  const server = await createServer({
    configFile: false,
    server: { middlewareMode: true, hmr: false, ws: false },
    appType: "custom",
    logLevel: "error",
    optimizeDeps: { noDiscovery: true },
  });
  return { load: (path) => server.ssrLoadModule(path), close: () => server.close() };
}
