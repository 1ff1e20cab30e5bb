import type { BatchCall } from '../../counting/batch';
import type { DecisionError } from '../../counting/decision-error';
import type { Operation } from '../../counting/operation';
import type { RateLimitRequest } from '../../limiter/request';
import type { Verdict } from '../../limiter/verdict';
import type { CallTrace, TraceCarrier } from './tracer';

/**
 * Receives the outcome of a decision: exactly one of the two is called, once, synchronously or later, unless the
 * decision is cancelled first.
 */
export interface DecisionObserver {
  verdict(verdict: Verdict): void;
  error(error: DecisionError): void;
  /** The trace that records the trip to the store, when the call is traced. */
  readonly trace?: CallTrace | undefined;
  /**
   * Milliseconds from the request on in which an answer reaches the caller before its deadline: four fifths of it.
   * Undefined: any number.
   */
  readonly timeToAnswer?: number | undefined;
  /** For logs; read before the outcome is delivered. */
  readonly caller?: Caller | undefined;
}

/** Who has sent a request. */
export interface Caller extends TraceCarrier {
  /** The other end of its connection, as a socket has it: without an address on a Unix socket. */
  readonly peer?: { readonly remoteAddress?: string | undefined; readonly remotePort?: number | undefined } | undefined;
}

/**
 * Why the outcome is no longer needed: the caller's deadline has passed, or the caller has cancelled or disconnected.
 */
export type CancelCause = 'deadline_exceeded' | 'cancelled';

/** A decision in flight. */
export interface PendingDecision {
  /**
   * Cancels the decision; to be called at most once, and not after the outcome. Hits that have not been sent to the
   * store are not counted there; hits that have been sent stay counted.
   */
  cancel(cause: CancelCause): void;
}

/** Decides one request. Never throws: every failure reaches the observer as an error. */
export type Decide = (request: RateLimitRequest, observer: DecisionObserver) => PendingDecision;

/**
 * Applies operations in the pipeline windows of decisions, but for no decision: for operators, who read counters.
 * Exactly one of the two is called, once, synchronously or later: `settled` when every operation has its count in
 * `countAfter`. Never throws.
 */
export type ApplyOperations = (
  operations: readonly Operation[],
  observer: { readonly settled: () => void; readonly failed: (error: DecisionError) => void },
) => void;

/** A call on its way to the store and back. */
export interface WindowCall extends BatchCall {
  /** The trace that records the window's trip to the store, when the call is traced. */
  readonly trace?: CallTrace | undefined;
  /** Answers it by policies, if each of its limits has one, and it has no answer yet. */
  expire?(): void;
}
