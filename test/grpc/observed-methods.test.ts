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
  /** What the transport has received, and the causes with which the handler was cancelled. */
  readonly events: string[] = [];
  readonly #statistics = new Statistics(0);
  readonly #durations: number[] = [];
  readonly #handler;
  now = 100;
  /** The call as its handler received it. */
  kept!: UnaryCall;
  cancel: (cause: CancelCause) => void = () => {};
  readonly call: UnaryCall = {
    reply: () => void this.events.push('reply'),
    fail: (status, message) => void this.events.push(`${status} ${message}`),
    onCancel: (work) => (this.cancel = (cause) => work.cancel(cause)),
    metadata: (name) => `the ${name}`,
    receivedAt: RECEIVED_AT,
  };

  constructor(isTraced = true, error?: Error) {
    const handle: UnaryHandler = (_message, call) => {
      this.kept = call;
      call.onCancel({ cancel: (cause) => this.events.push(cause) });
      if (error !== undefined) throw error;
    };
    const options = { statistics: this.#statistics, now: () => this.now, tracer: isTraced ? this.tracer : undefined };
    this.#handler = observedMethods(new Map([[PATH, handle]]), options).get(PATH)!;
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
  it('is counted, and begins a span if there is a tracer, when it begins', () => {
    const observed = new ObservedCall().begin();
    const { tracer, kept } = observed;
    const attributes = { 'rpc.system': 'grpc', 'rpc.service': 'package.Service', 'rpc.method': 'Method' };
    expect(tracer.begun).toEqual([['package.Service/Method', attributes, 'the b3', 10]]);
    expect([kept.trace, kept.metadata?.('b3')]).toEqual([tracer.trace, 'the b3']);
    expect([observed.measured, tracer.ended]).toEqual([[1, []], []]);
    expect(new ObservedCall(false).begin().kept.trace).toBeUndefined();
  });

  const { OK, INVALID_ARGUMENT, INTERNAL, CANCELLED, DEADLINE_EXCEEDED } = GrpcStatus;
  it.each<[event: string, end: (observed: ObservedCall) => void, status: GrpcStatus, isServerError: boolean]>([
    ['reply', ({ kept }) => kept.reply(NOTHING), OK, false],
    ['3 broken', ({ kept }) => kept.fail(INVALID_ARGUMENT, 'broken'), INVALID_ARGUMENT, false],
    ['13 broken', ({ kept }) => kept.fail(INTERNAL, 'broken'), INTERNAL, true],
    ['cancelled', ({ cancel }) => cancel('cancelled'), CANCELLED, false],
    ['deadline_exceeded', ({ cancel }) => cancel('deadline_exceeded'), DEADLINE_EXCEEDED, true],
  ])('is timed from its complete request to its end, once, and ends its span: %s', (event, end, status, isServer) => {
    const observed = new ObservedCall().begin();
    observed.now = 107.5;
    end(observed);
    expect(observed.events).toEqual([event]);
    observed.now = 110;
    observed.kept.reply(NOTHING);
    expect([observed.measured, observed.tracer.ended]).toEqual([[1, [17.5]], [[status, isServer]]]);
  });

  it('is timed once, and ends its span with INTERNAL, when its handler throws', () => {
    const error = new Error('broken');
    const observed = new ObservedCall(true, error);
    expect(() => observed.begin()).toThrow(error);
    expect([observed.measured, observed.tracer.ended]).toEqual([[1, [10]], [[INTERNAL, true]]]);
  });

  it('is counted and timed when it ends before it is handled', () => {
    const { measured, kept } = new ObservedCall().endUnhandled(DEADLINE_EXCEEDED);
    expect([measured, kept]).toEqual([[1, [10]], undefined]);
  });

  it('is never timed below zero, although two clocks that are read once per turn may differ', () => {
    const observed = new ObservedCall().begin();
    observed.now = RECEIVED_AT - 0.1;
    observed.kept.reply(NOTHING);
    expect(observed.measured).toEqual([1, [0]]);
  });
});
