import { of, throwError } from 'rxjs';
import { DecisionError } from '../../src/limiter/decision-error';
import { tracedTrip } from '../../src/streams/traced-trip';
import type { CallTrace, WindowLoad, WindowTracer } from '../../src/streams/ports/tracer';
import { type WindowCall, Window } from '../../src/streams/window';

const TRACE: CallTrace = { traceId: '', ended: () => undefined };
const OTHER: CallTrace = { traceId: '', ended: () => undefined };

function windowCall(key: string, more: Partial<WindowCall> = {}): WindowCall {
  return {
    operations: [{ key, hits: 1, windowSeconds: 60, limit: 10, guard: undefined, after: 0 }],
    isCancelled: false,
    settle: () => undefined,
    fail: () => undefined,
    ...more,
  };
}

/** Records the calls of the tracer. */
function recorder() {
  const recorded: unknown[] = [];
  const tracer: WindowTracer = {
    beginWindow: (load: WindowLoad, calls) => {
      recorded.push(['begun', load, calls]);
      return { ended: (failure) => recorded.push(['ended', failure]) };
    },
  };
  return { recorded, tracer };
}

function trip(calls: readonly WindowCall[], tracer: WindowTracer) {
  return tracedTrip(tracer, new Window(calls), calls);
}

describe('the trip of a window to the store', () => {
  it('is recorded from its beginning to its end, with the traced calls', () => {
    const { recorded, tracer } = recorder();
    const calls = [windowCall('a', { trace: TRACE }), windowCall('b'), windowCall('a', { trace: OTHER })];
    const seen: unknown[] = [];
    const operator = trip(calls, tracer);
    expect(recorded).toEqual([['begun', { operations: 2, calls: 3 }, [TRACE, OTHER]]]);
    of([2, 1])
      .pipe(operator)
      .subscribe((counts) => seen.push(counts));
    expect(recorded[1]).toEqual(['ended', undefined]);
    expect(seen).toEqual([[2, 1]]);
  });

  it('leaves out calls that have been cancelled', () => {
    const { recorded, tracer } = recorder();
    trip([windowCall('a', { trace: TRACE, isCancelled: true }), windowCall('b', { trace: OTHER })], tracer);
    expect(recorded).toEqual([['begun', { operations: 1, calls: 1 }, [OTHER]]]);
  });

  it('is not recorded without a traced call', () => {
    const { recorded, tracer } = recorder();
    of([1, 1])
      .pipe(trip([windowCall('a'), windowCall('b', { trace: TRACE, isCancelled: true })], tracer))
      .subscribe();
    expect(recorded).toEqual([]);
  });

  it.each<[what: string, error: unknown, code: string]>([
    ['the store', new DecisionError('store_timeout', 'late'), 'store_timeout'],
    ['an internal error', new TypeError('bug'), 'store_failed'],
  ])('ends with the failure of %s, which is passed on to the calls', (_, error, code) => {
    const { recorded, tracer } = recorder();
    const seen: unknown[] = [];
    throwError(() => error)
      .pipe(trip([windowCall('a', { trace: TRACE })], tracer))
      .subscribe({ error: (failure: unknown) => seen.push(failure) });
    expect([recorded[1], seen]).toEqual([['ended', code], [error]]);
  });

  it('ends with the failure of one operation', () => {
    const { recorded, tracer } = recorder();
    const counts = [1, new DecisionError('store_failed', 'one node is down')];
    of(counts)
      .pipe(trip([windowCall('a', { trace: TRACE }), windowCall('b')], tracer))
      .subscribe();
    expect(recorded[1]).toEqual(['ended', 'store_failed']);
  });
});
