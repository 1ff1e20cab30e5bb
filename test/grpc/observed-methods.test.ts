import { GrpcStatus, type UnaryCall, type UnaryHandler } from '../../src/grpc/method';
import { observedMethods } from '../../src/grpc/observed-methods';
import { Statistics } from '../../src/statistics/statistics';
import type { CancelCause } from '../../src/streams/ports/decide';
import type { CallTrace, Tracer } from '../../src/streams/ports/tracer';

const PATH = '/package.Service/Method';
const NOTHING = new Uint8Array();
/** Of every call, in milliseconds. It begins at 100. */
const RECEIVED_AT = 90;

/** A tracer that chooses every call and records the spans. */
class RecordingTracer implements Tracer {
  readonly fields = [];
  readonly begun: unknown[] = [];
  readonly ended: unknown[] = [];
  readonly trace: CallTrace = {
    traceId: '',
    ended: (attributes, hasFailed) => this.ended.push([attributes['rpc.grpc.status_code'], hasFailed]),
  };
  readonly begin: Tracer['begin'] = (name, attributes, carrier) => {
    this.begun.push([name, attributes, carrier.metadata?.('b3'), carrier.ageMs]);
    return this.trace;
  };
  beginWindow(): never {
    throw new Error('not a call');
  }
}

/** An observed method on a transport that records what it receives, at a time that the test sets. */
class ObservedCall {
  readonly tracer = new RecordingTracer();
  readonly sent: string[] = [];
  readonly #statistics = new Statistics(0);
  readonly #durations: number[] = [];
  readonly #handler;
  now = 100;
  /** The call as its handler received it. */
  kept!: UnaryCall;
  cancel: (cause: CancelCause) => void = () => {};
  readonly call: UnaryCall = {
    reply: () => void this.sent.push('reply'),
    fail: (status, message) => void this.sent.push(`${status} ${message}`),
    onCancel: (work) => (this.cancel = (cause) => work.cancel(cause)),
    metadata: (name) => `the ${name}`,
    receivedAt: RECEIVED_AT,
  };

  constructor(handle: UnaryHandler = () => {}, isTraced = true) {
    const keep: UnaryHandler = (message, call) => {
      this.kept = call;
      handle(message, call);
    };
    const options = { statistics: this.#statistics, now: () => this.now, tracer: isTraced ? this.tracer : undefined };
    this.#handler = observedMethods(new Map([[PATH, keep]]), options).get(PATH)!;
    const timer = this.#statistics.timer('ratelimit_server.Method.response_time');
    timer.addRecorder({ add: (values, count) => this.#durations.push(...values.subarray(0, count)) });
  }

  begin(): this {
    this.#handler(NOTHING, this.call);
    return this;
  }
  endUnhandled(status: GrpcStatus): this {
    this.#handler.unhandled!(this.call, status);
    return this;
  }

  /** How many calls were counted, and the times of those that have ended. */
  get measured(): [total: number | undefined, durations: number[]] {
    this.#statistics.timer('ratelimit_server.Method.response_time').flush();
    return [new Map(this.#statistics.entries()).get('ratelimit_server.Method.total_requests'), this.#durations];
  }
}

describe('a call of an observed method', () => {
  it('is counted and begins a span when it begins, and is timed from its complete request to its answer', () => {
    const observed = new ObservedCall().begin();
    const { tracer, kept } = observed;
    const attributes = { 'rpc.system': 'grpc', 'rpc.service': 'package.Service', 'rpc.method': 'Method' };
    expect(tracer.begun).toEqual([['package.Service/Method', attributes, 'the b3', 10]]);
    expect([kept.trace, kept.metadata?.('b3')]).toEqual([tracer.trace, 'the b3']);
    expect([observed.measured, tracer.ended]).toEqual([[1, []], []]);
    observed.now = 107.5;
    kept.reply(NOTHING);
    expect([observed.sent, observed.measured]).toEqual([['reply'], [1, [17.5]]]);
    expect(tracer.ended).toEqual([[GrpcStatus.OK, false]]);
  });

  it('has no trace without a tracer', () => {
    expect(new ObservedCall(undefined, false).begin().kept.trace).toBeUndefined();
  });

  it.each([
    [GrpcStatus.INVALID_ARGUMENT, false],
    [GrpcStatus.INTERNAL, true],
  ])('is timed when it fails, and ends its span with the status %i; an error of the server: %s', (status, isServer) => {
    const { sent, measured, tracer } = new ObservedCall((_message, call) => call.fail(status, 'broken')).begin();
    expect([sent, measured]).toEqual([[`${status} broken`], [1, [10]]]);
    expect(tracer.ended).toEqual([[status, isServer]]);
  });

  it('is timed once, and ends its span with INTERNAL, when its handler throws', () => {
    const error = new Error('broken');
    const observed = new ObservedCall(() => {
      throw error;
    });
    expect(() => observed.begin()).toThrow(error);
    expect([observed.measured, observed.tracer.ended]).toEqual([[1, [10]], [[GrpcStatus.INTERNAL, true]]]);
  });

  it.each([
    ['cancelled', GrpcStatus.CANCELLED, false],
    ['deadline_exceeded', GrpcStatus.DEADLINE_EXCEEDED, true],
  ] as const)('is timed once when it is cancelled with the cause %s and answered later', (cause, status, isServer) => {
    const causes: string[] = [];
    const observed = new ObservedCall((_message, call) => call.onCancel({ cancel: (it) => causes.push(it) })).begin();
    observed.now = 103;
    observed.cancel(cause);
    observed.now = 110;
    observed.kept.reply(NOTHING);
    expect([causes, observed.measured]).toEqual([[cause], [1, [13]]]);
    expect(observed.tracer.ended).toEqual([[status, isServer]]);
  });

  it('is counted and timed when it ends before it is handled', () => {
    const handle = jest.fn();
    const { measured } = new ObservedCall(handle).endUnhandled(GrpcStatus.DEADLINE_EXCEEDED);
    expect([measured, handle.mock.calls]).toEqual([[1, [10]], []]);
  });

  it('is never timed below zero, although two clocks that are read once per turn may differ', () => {
    const observed = new ObservedCall().begin();
    observed.now = RECEIVED_AT - 0.1;
    observed.kept.reply(NOTHING);
    expect(observed.measured).toEqual([1, [0]]);
  });
});
