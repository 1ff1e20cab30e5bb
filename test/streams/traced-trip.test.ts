import { of, throwError } from 'rxjs';
import { DecisionError } from '../../src/limiter/decision-error';
import { tracedTrip } from '../../src/streams/traced-trip';
import type { CallTrace, WindowLoad, WindowTracer } from '../../src/streams/ports/tracer';
import { type WindowCall, Window } from '../../src/streams/window';

const TRACE: CallTrace = { ended: () => undefined };
const OTHER: CallTrace = { ended: () => undefined };

function waiting(key: string, more: Partial<WindowCall> = {}): WindowCall {
  return {
    operations: [{ key, hits: 1, windowSeconds: 60, limit: 10, guard: undefined, after: 0 }],
    isCancelled: false,
    settle: () => undefined,
    fail: () => undefined,
    ...more,
  };
}

/** Writes down what it is told. */
function recorder() {
  const told: unknown[] = [];
  const tracer: WindowTracer = {
    beginWindow: (load: WindowLoad, calls) => {
      told.push(['begun', load, calls]);
      return { ended: (failure) => told.push(['ended', failure]) };
    },
  };
  return { told, tracer };
}

function trip(calls: readonly WindowCall[], tracer: WindowTracer) {
  return tracedTrip(tracer, new Window(calls), calls);
}

describe('the trip of a window to the store', () => {
  it('is told from its beginning to its end, with the calls that are traced', () => {
    const { told, tracer } = recorder();
    const calls = [waiting('a', { trace: TRACE }), waiting('b'), waiting('a', { trace: OTHER })];
    const seen: unknown[] = [];
    const operator = trip(calls, tracer);
    expect(told).toEqual([['begun', { operations: 2, calls: 3 }, [TRACE, OTHER]]]);
    of([2, 1])
      .pipe(operator)
      .subscribe((counts) => seen.push(counts));
    expect(told[1]).toEqual(['ended', undefined]);
    expect(seen).toEqual([[2, 1]]);
  });

  it('leaves out calls that have been cancelled', () => {
    const { told, tracer } = recorder();
    trip([waiting('a', { trace: TRACE, isCancelled: true }), waiting('b', { trace: OTHER })], tracer);
    expect(told).toEqual([['begun', { operations: 1, calls: 1 }, [OTHER]]]);
  });

  it('is not told when it has no call that is traced', () => {
    const { told, tracer } = recorder();
    of([1, 1])
      .pipe(trip([waiting('a'), waiting('b', { trace: TRACE, isCancelled: true })], tracer))
      .subscribe();
    expect(told).toEqual([]);
  });

  it.each<[what: string, error: unknown, code: string]>([
    ['the store', new DecisionError('store_timeout', 'late'), 'store_timeout'],
    ['a defect', new TypeError('of ours'), 'store_failed'],
  ])('ends with the failure of %s, which goes on to the calls', (_, error, code) => {
    const { told, tracer } = recorder();
    const seen: unknown[] = [];
    throwError(() => error)
      .pipe(trip([waiting('a', { trace: TRACE })], tracer))
      .subscribe({ error: (failure: unknown) => seen.push(failure) });
    expect([told[1], seen]).toEqual([['ended', code], [error]]);
  });

  it('ends with the failure of one operation', () => {
    const { told, tracer } = recorder();
    const counts = [1, new DecisionError('store_failed', 'one node is away')];
    of(counts)
      .pipe(trip([waiting('a', { trace: TRACE }), waiting('b')], tracer))
      .subscribe();
    expect(told[1]).toEqual(['ended', 'store_failed']);
  });
});
