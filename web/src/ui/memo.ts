// A component that is rendered again only when one of its properties is another value.
import { Component, type ComponentChildren, type ComponentType, h } from "preact";

export function memo<P extends object>(view: (props: P) => ComponentChildren): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const keys = Object.keys({ ...this.props, ...next }) as (keyof P)[];
      return keys.some((key) => next[key] !== (this.props as P)[key]);
    }

    override render() {
      return h(view as ComponentType<P>, this.props as P);
    }
  };
}
