import type { SchedulerLike } from 'rxjs';
import type { Batch } from '../counting/batch';
import type { WaitingCall } from '../counting/lease';
import { type Leases, TENDED_EVERY } from '../counting/leases';
import { DecisionError } from '../counting/decision-error';
import type { Operation, Result } from '../counting/operation';
import type { Limiter } from '../limiter/limiter';
import type { Ruleset } from '../rules/ruleset';

/** The leases of a decision path: what they decide, what batches take for them and give back, and when. */
export class Leasing {
  readonly #leases: Leases;
  readonly #limiter: Pick<Limiter, 'mayLease'>;
  readonly #scheduler: SchedulerLike;
  readonly #send: (operations: readonly Operation[], ended: () => void) => void;
  #ruleset: Ruleset | undefined;
  /** Whether limits of it may be leased. */
  #isUsed = false;
  #isTended = false;

  /** @param send dispatches operations of no call, and calls back when they are counted or have failed */
  constructor(
    { leases, limiter }: { readonly leases: Leases; readonly limiter: Pick<Limiter, 'mayLease'> },
    scheduler: SchedulerLike,
    send: (operations: readonly Operation[], ended: () => void) => void,
  ) {
    this.#leases = leases;
    this.#limiter = limiter;
    this.#scheduler = scheduler;
    this.#send = send;
  }

  /**
   * Decides those operations of a call that leases are enough for. Returns the others. @param ruleset those of the call
   */
  use(operations: readonly Operation[], ruleset: Ruleset | undefined): readonly Operation[] {
    if (ruleset !== this.#ruleset) {
      this.#ruleset = ruleset;
      this.#isUsed = this.#limiter.mayLease(ruleset);
      this.#leases.giveBackAll();
      this.#sendDue();
    }
    if (!this.#isUsed) return operations;
    const left = this.#leases.use(operations);
    if (this.#leases.hasDue) this.#sendDue();
    return left;
  }

  /** See {@link Leases.queueFor}. */
  queueFor(operations: readonly Operation[]): WaitingCall[] | undefined {
    return this.#leases.queueFor(operations);
  }

  /** A batch is about to be sent. Returns whether {@link answered} has to be called. */
  prepare({ operations }: Batch): boolean {
    if (!this.#isUsed) return false;
    this.#leases.prepare(operations);
    this.#tendLater();
    return true;
  }

  /** @param results the error with which the batch has failed, instead */
  answered({ operations }: Batch, results: readonly Result[] | DecisionError): void {
    for (let index = 0; index < operations.length; index += 1) {
      const result = results instanceof DecisionError ? results : (results[index] as Result);
      this.#leases.answered(operations[index] as Operation, result);
    }
    this.#sendDue();
  }

  /** Gives back what is held of some keys, and calls back when their counters have it. */
  release(keys: readonly string[], released: () => void): void {
    for (const key of keys) this.#leases.giveBack(key);
    this.#sendDue(released);
  }

  /** Gives back what is held. */
  complete(): void {
    this.#leases.giveBackAll();
    this.#sendDue();
  }

  /** @param ended called when what was due is counted, or has failed */
  #sendDue(ended: () => void = () => undefined): void {
    const operations = this.#leases.takeToSend();
    if (operations.length === 0) ended();
    else this.#send(operations, ended);
    for (const resume of this.#leases.takeToResume()) resume();
  }

  #tendLater(): void {
    if (this.#isTended || this.#leases.isIdle) return;
    this.#isTended = true;
    this.#scheduler.schedule(() => {
      this.#isTended = false;
      this.#leases.tend();
      this.#sendDue();
      this.#tendLater();
    }, TENDED_EVERY);
  }
}
