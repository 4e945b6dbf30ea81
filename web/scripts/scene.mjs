// Serves the scene that the browser tests use, for those who develop the page: `HATCHERY_BIN=… node scripts/scene.mjs`.
import { scene } from "../test/browser/support/scene.mjs";

const { daemon } = await scene();
console.log(daemon.link);
console.log(`HATCHERY_URL=${daemon.url} HATCHERY_TOKEN=${daemon.token} npm run dev`);
process.on("SIGINT", async () => {
  await daemon.stop();
  process.exit(0);
});
process.on("SIGTERM", async () => {
  await daemon.stop();
  process.exit(0);
});
