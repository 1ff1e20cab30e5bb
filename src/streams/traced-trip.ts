import { type MonoTypeOperatorFunction, identity, tap } from 'rxjs';
import type { Count } from '../limiter/counter-operation';
import { DecisionError, type DecisionErrorCode } from '../limiter/decision-error';
import type { CallTrace, WindowTracer } from './ports/tracer';
import type { WindowCall, Window } from './window';

/**
 * Records a window's trip to the store in the traces of the calls that it carries. The trip begins when this is called and ends with the
 * first value or the error. Mirrors the source; without a traced call it is the identity.
 */
export function tracedTrip(
  tracer: WindowTracer,
  window: Window,
  calls: readonly WindowCall[],
): MonoTypeOperatorFunction<readonly Count[]> {
  const carried = calls.filter(({ isCancelled }) => !isCancelled);
  const traces = carried.flatMap(({ trace }): readonly CallTrace[] => (trace === undefined ? [] : [trace]));
  if (traces.length === 0) return identity;
  const trip = tracer.beginWindow({ operations: window.batch.length, calls: carried.length }, traces);
  return tap({
    next: (counts) => trip.ended(counts.find((count) => count instanceof DecisionError)?.code),
    error: (error: unknown) => trip.ended(failureOf(error)),
  });
}

/** Anything but a DecisionError is an internal error, which callers see as a failed store. */
function failureOf(error: unknown): DecisionErrorCode {
  return error instanceof DecisionError ? error.code : 'store_failed';
}
