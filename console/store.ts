import { useEffect, useState } from 'preact/hooks';

/** A value that components show: they are rendered again when it is replaced. */
export class Store<T> {
  readonly #listeners = new Set<() => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, render] = useState({});
  const { value } = store;
  useEffect(() => {
    // The value may have been replaced since it was shown.
    if (store.value !== value) render({});
    return store.subscribe(() => render({}));
  }, [store]);
  return value;
}
