// What most test files need: a daemon, a browser, and the end of both. The names can be imported, and have their values when the first test begins.
import { after, before } from "node:test";
import { launch } from "./browser.mjs";
import { emptyProject, scene } from "./scene.mjs";

export let daemon;
export let browser;
/** Who is who in the scene. */
export let who;

function stage(make, more) {
  before(async () => {
    ({ daemon, who } = await make());
    browser = await launch();
    await more?.();
  });
  after(async () => {
    await browser?.close();
    await daemon?.stop();
  });
}

/** The tests of this file have a project in which nothing has begun. What they need beside it is made by `more`. */
export const onEmptyProject = (more) => stage(async () => ({ daemon: await emptyProject() }), more);

/** The tests of this file have a project in the middle of its day. */
export const onScene = (more) => stage(scene, more);
