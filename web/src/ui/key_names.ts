// Keys by the names that this machine's keyboard has. Both the Command and the Control key work everywhere.
const isMac = typeof navigator !== "undefined" && /Mac|iP(hone|ad|od)/.test(navigator.platform);

export const FIND = isMac ? "⌘K" : "Ctrl K";
export const SEND = isMac ? "⌘↵" : "Ctrl ↵";
export const BESIDE = SEND;
