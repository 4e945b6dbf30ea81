import "./style/tokens.css";
import "./style/page.css";
import "./style/controls.css";
import "./style/home.css";
import "./style/notices.css";
import "./style/narrow.css";
import "./style/views.css";
import "./style/quest.css";
import "./style/agent.css";
import "./style/lists.css";
import "./style/dialogs.css";
import "./style/build.css";
import "./style/seats.css";
import "./style/log.css";
import { render } from "preact";
import { App } from "./app/app";
import { listenKeys } from "./app/keys";
import { watchLooks } from "./app/looks";
import { watchNeeds } from "./app/notices";
import { listen } from "./app/router";
import { store } from "./store/store";

declare global {
  interface Window {
    /** What a test, or a person with the console, looks at: nothing may be missing and nothing doubled. */
    hatchery: typeof store;
  }
}

window.hatchery = store;
listen();
listenKeys();
watchLooks(() => store.now());
watchNeeds();
store.watchSleep();
void store.load();
render(<App />, document.getElementById("page") as HTMLElement);
