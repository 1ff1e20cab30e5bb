import { GrpcStatus, type UnaryCall, type UnaryHandler } from '../../src/grpc/method';
import { observedMethods } from '../../src/grpc/observed-methods';
import { Statistics } from '../../src/statistics/statistics';
import type { CancelCause } from '../../src/streams/ports/decide';
import type { CallTrace, Tracer } from '../../src/streams/ports/tracer';

const PATH = '/package.Service/Method';
const NOTHING = new Uint8Array();
/** Of every call, in milliseconds. */
const RECEIVED_AT = 90;

/**
 * Calls an observed method over a transport that records what it receives, at a time that the test sets. With `unhandled`, the call
 * ends with this status before it is handled.
 */
function callOf(handle: UnaryHandler, { tracer, unhandled }: { tracer?: Tracer; unhandled?: GrpcStatus } = {}) {
  const statistics = new Statistics(0);
  const sent: string[] = [];
  let cancel: (cause: CancelCause) => void = () => {};
  const durations: number[] = [];
  const time = { now: 100 };
  const method = observedMethods(new Map([[PATH, handle]]), { statistics, now: () => time.now, tracer }).get(PATH);
  statistics
    .timer('ratelimit_server.Method.response_time')
    .addRecorder({ add: (values, count) => durations.push(...values.subarray(0, count)) });
  const call: UnaryCall = {
    reply: () => void sent.push('reply'),
    fail: (status, message) => void sent.push(`${status} ${message}`),
    onCancel: (work) => (cancel = (cause) => work.cancel(cause)),
    metadata: (name) => `the ${name}`,
    receivedAt: RECEIVED_AT,
  };
  if (unhandled === undefined) method?.(NOTHING, call);
  else method?.unhandled?.(call, unhandled);
  return {
    sent,
    time,
    cancel: (cause: CancelCause) => cancel(cause),
    durations: () => {
      statistics.timer('ratelimit_server.Method.response_time').flush();
      return durations;
    },
    total: () => new Map(statistics.entries()).get('ratelimit_server.Method.total_requests'),
  };
}

let kept: UnaryCall;
/** A handler that answers later: the test has the call. */
const keep: UnaryHandler = (_message, call) => {
  kept = call;
};

describe('a call of an observed method', () => {
  it('is counted when it begins, and timed from its complete request to its answer', () => {
    const { sent, time, durations, total } = callOf(keep);
    expect([total(), durations()]).toEqual([1, []]);
    time.now = 107.5;
    kept.reply(NOTHING);
    expect([sent, durations()]).toEqual([['reply'], [17.5]]);
  });

  it('is timed when it fails', () => {
    const { sent, durations } = callOf((_message, call) => call.fail(GrpcStatus.INTERNAL, 'broken'));
    expect([sent, durations()]).toEqual([['13 broken'], [10]]);
  });

  it('is timed once, and ends its span with INTERNAL, when its handler throws', () => {
    const error = new Error('broken');
    const ended: unknown[] = [];
    const statistics = new Statistics(0);
    const durations: number[] = [];
    const responseTime = statistics.timer('ratelimit_server.Method.response_time');
    responseTime.addRecorder({ add: (values, count) => durations.push(...values.subarray(0, count)) });
    const tracer: Tracer = {
      fields: [],
      begin: () => ({ traceId: '', ended: (attributes, hasFailed) => ended.push([attributes, hasFailed]) }),
      beginWindow: () => {
        throw new Error('not a call');
      },
    };
    const throwing: UnaryHandler = () => {
      throw error;
    };
    const method = observedMethods(new Map([[PATH, throwing]]), { statistics, now: () => 100, tracer }).get(PATH)!;
    const call: UnaryCall = { reply: () => {}, fail: () => {}, onCancel: () => {}, receivedAt: RECEIVED_AT };
    expect(() => method(NOTHING, call)).toThrow(error);
    responseTime.flush();
    expect([durations, ended]).toEqual([[10], [[{ 'rpc.grpc.status_code': GrpcStatus.INTERNAL }, true]]]);
  });

  it('is timed once when it is cancelled and answered afterwards', () => {
    const causes: string[] = [];
    const { time, cancel, durations } = callOf((message, call) => {
      keep(message, call);
      call.onCancel({ cancel: (cause) => causes.push(cause) });
    });
    time.now = 103;
    cancel('deadline_exceeded');
    time.now = 110;
    kept.reply(NOTHING);
    expect([causes, durations()]).toEqual([['deadline_exceeded'], [13]]);
  });

  it('is counted and timed when it ends before it is handled', () => {
    const handle = jest.fn();
    const { durations, total } = callOf(handle, { unhandled: GrpcStatus.DEADLINE_EXCEEDED });
    expect([total(), durations(), handle.mock.calls]).toEqual([1, [10], []]);
  });

  it('is never timed below zero, although two clocks that are read once per turn may differ', () => {
    const { time, durations } = callOf(keep);
    time.now = RECEIVED_AT - 0.1;
    kept.reply(NOTHING);
    expect(durations()).toEqual([0]);
  });

  it('has the metadata of its transport', () => {
    callOf(keep);
    expect(kept.metadata?.('b3')).toBe('the b3');
  });

  it('has no trace without a tracer', () => {
    callOf(keep);
    expect(kept.trace).toBeUndefined();
  });
});

describe('a traced call', () => {
  /** A tracer that chooses every call and records the spans. */
  function recordingTracer() {
    const begun: unknown[] = [];
    const ended: unknown[] = [];
    const trace: CallTrace = { traceId: '', ended: (attributes, hasFailed) => ended.push([attributes, hasFailed]) };
    const tracer: Tracer = {
      fields: [],
      begin(name, attributes, carrier) {
        begun.push([name, attributes, carrier.metadata?.('b3'), carrier.ageMs]);
        return trace;
      },
      beginWindow: () => {
        throw new Error('not a call');
      },
    };
    return { tracer, trace, begun, ended };
  }

  it('begins a span named after the method, at the time of its complete request, and carries its trace', () => {
    const { tracer, trace, begun, ended } = recordingTracer();
    callOf(keep, { tracer });
    const attributes = { 'rpc.system': 'grpc', 'rpc.service': 'package.Service', 'rpc.method': 'Method' };
    expect(begun).toEqual([['package.Service/Method', attributes, 'the b3', 10]]);
    expect(kept.trace).toBe(trace);
    expect(ended).toEqual([]);
  });

  it('ends its span with OK when it is answered', () => {
    const { tracer, ended } = recordingTracer();
    callOf((_message, call) => call.reply(NOTHING), { tracer });
    expect(ended).toEqual([[{ 'rpc.grpc.status_code': GrpcStatus.OK }, false]]);
  });

  it.each([
    [GrpcStatus.INVALID_ARGUMENT, false],
    [GrpcStatus.INTERNAL, true],
  ])('ends its span with the status when it fails with %i; an error of the server: %s', (status, isServerError) => {
    const { tracer, ended } = recordingTracer();
    callOf((_message, call) => call.fail(status, 'broken'), { tracer });
    expect(ended).toEqual([[{ 'rpc.grpc.status_code': status }, isServerError]]);
  });

  it.each([
    ['cancelled', GrpcStatus.CANCELLED, false],
    ['deadline_exceeded', GrpcStatus.DEADLINE_EXCEEDED, true],
  ] as const)('ends its span once when it is cancelled with the cause %s', (cause, status, isServerError) => {
    const { tracer, ended } = recordingTracer();
    const { cancel } = callOf(
      (message, call) => {
        keep(message, call);
        call.onCancel({ cancel: () => {} });
      },
      { tracer },
    );
    cancel(cause);
    kept.reply(NOTHING);
    expect(ended).toEqual([[{ 'rpc.grpc.status_code': status }, isServerError]]);
  });
});
