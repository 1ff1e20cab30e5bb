/** A body that is being received. */
export interface UnfinishedBody {
  /** When its first bytes were reserved, in milliseconds of `performance.now()`; set, as `reserved`, only by {@link BodyMemory}. */
  since: number;
  /** Bytes that are reserved for it. */
  reserved: number;
  /** Called when the body is ended for lack of memory, of which it has none any more. */
  readonly end: () => void;
}

/** The part of the memory that is released at once when there is no more: it makes the search for bodies to end rare. */
const RELEASED_PART = 1 / 8;

/**
 * The memory for unfinished bodies of all connections. When it is used up, the bodies that use the most of it for the longest time
 * (bytes × milliseconds) are ended. So a body that is small or arrives quickly is received, however many others are left unfinished.
 * Addresses are not considered: all callers behind a proxy have the same one.
 */
export class BodyMemory {
  readonly #limit: number;
  readonly #bodies = new Set<UnfinishedBody>();
  #reserved = 0;

  /** @param limit in bytes; at least that of one body */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Reserves further bytes for a body. Bodies are ended if necessary; this one never. */
  reserve(body: UnfinishedBody, bytes: number): void {
    const now = performance.now();
    if (this.#reserved + bytes > this.#limit) this.#endBodies(bytes + this.#limit * RELEASED_PART, body, now);
    if (body.reserved === 0) {
      body.since = now;
      this.#bodies.add(body);
    }
    body.reserved += bytes;
    this.#reserved += bytes;
  }

  /** The body is complete or was given up. Can be called again. */
  release(body: UnfinishedBody): void {
    if (body.reserved === 0) return;
    this.#bodies.delete(body);
    this.#reserved -= body.reserved;
    body.reserved = 0;
  }

  #endBodies(bytes: number, except: UnfinishedBody, now: number): void {
    function cost({ reserved, since }: UnfinishedBody): number {
      return reserved * (now - since);
    }
    const byCost = [...this.#bodies].sort((one, other) => cost(other) - cost(one));
    for (const body of byCost) {
      if (this.#reserved + bytes <= this.#limit) return;
      if (body === except) continue;
      this.release(body);
      body.end();
    }
  }
}
