/** The move of a slot has ended when so many milliseconds have passed without TRYAGAIN. */
const MOVED_AFTER = 1_000;
/** Most milliseconds for which commands wait for the end of a move, if KVSTORE_TIMEOUT is 0. */
const LONGEST_MOVE = 10_000;

/** The slots of a cluster for which a node has replied TRYAGAIN: some of their keys are on another node already. */
export class MovingSlots {
  readonly #timeout: number;
  /** In milliseconds of `performance.now()`. */
  readonly #moving = new Map<number, { readonly since: number; last: number }>();

  /** @param timeout KVSTORE_TIMEOUT */
  constructor(timeout: number) {
    this.#timeout = timeout || LONGEST_MOVE;
  }

  /** A node has replied TRYAGAIN. Returns whether the slot has not been moving for longer than a command may take. */
  tryAgain(slot: number): boolean {
    const now = performance.now();
    const moving = this.#moving.get(slot) ?? { since: now, last: now };
    this.#moving.set(slot, moving);
    moving.last = now;
    return now - moving.since < this.#timeout;
  }

  /** Forgets the slots whose move has ended. */
  forgetMoved(): void {
    for (const [slot, { last }] of this.#moving) {
      if (performance.now() - last >= MOVED_AFTER) this.#moving.delete(slot);
    }
  }
}
