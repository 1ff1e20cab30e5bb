import { type MonoTypeOperatorFunction, identity, tap } from 'rxjs';
import type { Batch } from '../counting/batch';
import type { Result } from '../counting/operation';
import { DecisionError, type DecisionErrorCode } from '../counting/decision-error';
import type { CallTrace, WindowTracer } from './ports/tracer';
import type { WindowCall } from './ports/decide';

/**
 * Records a window's trip to the store in the traces of the calls that it carries. The trip begins when this is called
 * and ends with the first value or the error. Mirrors the source; without a traced call it is the identity.
 */
export function tracedTrip(
  tracer: WindowTracer,
  { operations, calls }: Batch<WindowCall>,
): MonoTypeOperatorFunction<readonly Result[]> {
  const traces = calls.flatMap(({ trace }): readonly CallTrace[] => (trace === undefined ? [] : [trace]));
  if (traces.length === 0) return identity;
  const trip = tracer.beginWindow({ operations: operations.length, calls: calls.length }, traces);
  return tap({
    next: (results) => trip.ended(results.find((result) => result instanceof DecisionError)?.code),
    error: (error: unknown) => trip.ended(failureOf(error)),
  });
}

/** Anything but a DecisionError is an internal error, which callers see as a failed store. */
function failureOf(error: unknown): DecisionErrorCode {
  return error instanceof DecisionError ? error.code : 'store_failed';
}
