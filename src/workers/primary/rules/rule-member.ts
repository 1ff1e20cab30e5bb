import type { Observable } from 'rxjs';
import type { Ruleset } from '../../../rules/ruleset';

/**
 * A worker that receives rules. The observables act on subscribing, complete when the worker has answered, and never fail; when the
 * worker is gone, they may stay silent.
 */
export interface RuleMember {
  /** Transfers rules, which the worker does not use yet. Emits at each sign of progress. */
  prepare(ruleset: Ruleset): Observable<unknown>;
  /** The worker parks requests. */
  hold(): Observable<unknown>;
  /** The worker decides with the rules prepared last, if there are any, first the requests that it has parked. */
  commit(): Observable<unknown>;
  /** Kills a worker that does not answer; `gone$` follows. */
  kill(reason: string): void;
  /** Emits when the process of the worker has ended, also to those who subscribe later. */
  readonly gone$: Observable<unknown>;
}
