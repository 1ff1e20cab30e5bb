import { type MonoTypeOperatorFunction, identity, tap } from 'rxjs';
import type { Count } from '../limiter/counter-operation';
import { DecisionError, type DecisionErrorCode } from '../limiter/decision-error';
import type { CallTrace, WindowTracer } from './ports/tracer';
import type { WindowCall, Window } from './window';

/**
 * Shows a window's trip to the store in the traces of the calls that it carries: it begins now and ends with the first value or
 * the error. Passes everything on as it comes, and does nothing where no call is traced.
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
    next: (counts) => trip.ended(counts.find((count) => typeof count !== 'number')?.code),
    error: (error: unknown) => trip.ended(failureOf(error)),
  });
}

/** What is not a DecisionError is a defect of ours, which callers see as a failed store. */
function failureOf(error: unknown): DecisionErrorCode {
  return error instanceof DecisionError ? error.code : 'store_failed';
}
