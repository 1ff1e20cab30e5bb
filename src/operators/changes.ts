import type { Change } from './live-answers';

/** Changes that are kept. */
const MOST = 200;

/** What operators have changed, here and in other instances, as far as they were asked: the newest last. */
export class Changes {
  readonly #instance: { readonly id: string; readonly name: string };
  #list: readonly Change[] = [];
  #made = 0;

  constructor(instance: { readonly id: string; readonly name: string }) {
    this.#instance = instance;
  }

  get list(): readonly Change[] {
    return this.#list;
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
    this.#list = [...known.values()].sort((one, other) => (one.at < other.at ? -1 : 1)).slice(-MOST);
  }
}
