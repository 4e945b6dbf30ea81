// A value that components render again for.
import { useLayoutEffect, useReducer } from "preact/hooks";

export interface Signal<T> {
  get(): T;
  set(value: T): void;
  use(): T;
}

export function signal<T>(first: T): Signal<T> {
  let value = first;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      value = next;
      for (const listener of [...listeners]) listener();
    },
    use() {
      const [, again] = useReducer<number, void>((n) => n + 1, 0);
      // Before the next frame: what is set until then is not missed.
      useLayoutEffect(() => {
        const hear = () => again();
        listeners.add(hear);
        return () => void listeners.delete(hear);
      }, []);
      return value;
    },
  };
}
