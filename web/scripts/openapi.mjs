// Writes openapi.json anew from the program that HATCHERY_BIN names: quicker than by the test that holds it.
import { writeFileSync } from "node:fs";
import { Daemon } from "../test/browser/support/daemon.mjs";

const daemon = await Daemon.start();
writeFileSync("openapi.json", `${JSON.stringify(await daemon.get("/api/openapi.json"), null, 2)}\n`);
await daemon.stop();
