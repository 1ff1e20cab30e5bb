import type { Change } from '../live-answers';

/** Changes that are kept. */
const MOST = 200;

/** What operators have changed, here and in other instances, as far as they were asked: the newest last. */
export class Changes {
  readonly #instance: { readonly id: string; readonly name: string };
  #list: readonly Change[] = [];
  #made = 0;
  #version = 0;

  constructor(instance: { readonly id: string; readonly name: string }) {
    this.#instance = instance;
  }

  get list(): readonly Change[] {
    return this.#list;
  }

  /** Another number when there are others. */
  get version(): number {
    return this.#version;
  }

  /** Keeps a change that was made here. */
  add(change: Omit<Change, 'id' | 'at' | 'instance'>): void {
    const { id, name: instance } = this.#instance;
    this.#made += 1;
    this.take([{ id: `${id}/${this.#made}`, at: new Date().toISOString(), instance, ...change }]);
  }

  /** Keeps changes that may be known. */
  take(changes: readonly Change[]): void {
    const known = new Map([...changes, ...this.#list].map((change) => [change.id, change]));
    const list = [...known.values()].sort((one, other) => (one.at < other.at ? -1 : 1)).slice(-MOST);
    if (list.some(({ id }, index) => id !== this.#list[index]?.id)) this.#version += 1;
    this.#list = list;
  }
}
