import type { Log } from '../../log/log';
import type { Caller } from '../../streams/ports/decide';
import { excerpt } from '../../text/excerpt';
import { nameOfPeer } from '../../text/host-port';
import { Samples } from '../../text/samples';

/** How much of a reason is logged, in characters. */
const LONGEST_REASON = 256;

/** Warns about samples of the calls that are rejected without a decision: see {@link Samples}. */
export class RejectedCalls {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #samples = new Samples();

  /** @param now Unix milliseconds */
  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** @param reason as the caller gets it */
  rejected(reason: string, peer: Caller['peer']): void {
    const nowSeconds = Math.floor(this.#now() / 1000);
    if (!this.#samples.isDue(nowSeconds)) return;
    const logged = excerpt(reason, LONGEST_REASON);
    if (!this.#samples.isNew(logged, nowSeconds)) return;
    this.#log.warn('calls are rejected without a decision', { reason: logged, peer: nameOfPeer(peer ?? {}) });
  }
}
