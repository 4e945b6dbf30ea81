// Whether somebody can see this tab. A browser has few connections to one address: a tab that nobody sees uses none for what it
// would only show.
import { useEffect, useState } from "preact/hooks";

export function useVisible(): boolean {
  const [visible, setVisible] = useState(document.visibilityState !== "hidden");
  useEffect(() => {
    const look = () => setVisible(document.visibilityState !== "hidden");
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return visible;
}
