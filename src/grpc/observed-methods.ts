import type { Statistics } from '../statistics/statistics';
import type { Timer } from '../statistics/timer';
import type { CancelCause } from '../streams/ports/decide';
import type { CallTrace, TraceCarrier, Tracer } from '../streams/ports/tracer';
import { type Cancellable, GrpcStatus, type UnaryCall, type UnaryHandler, type UnaryMethods } from './method';

export interface ObserveOptions {
  readonly statistics: Statistics;
  /** The monotonic clock of {@link UnaryCall.receivedAt}: milliseconds with fractions. */
  readonly now: () => number;
  /** Chooses the calls to trace; undefined when tracing is off. */
  readonly tracer?: Tracer | undefined;
}

/**
 * Measures and traces the calls of unary methods.
 *
 * - `ratelimit_server.<method>.total_requests` counts the calls as they are handled, or end before that.
 * - `ratelimit_server.<method>.response_time` gets one duration per call, from the complete request to the end of the call,
 *   including failed and cancelled calls, those whose handler throws, and those that end before they are handled.
 * - The calls that the tracer chooses get one span each, named after the method.
 */
export function observedMethods(methods: UnaryMethods, options: ObserveOptions): UnaryMethods {
  return new Map([...methods].map(([path, handle]) => [path, observed(path, handle, options)] as const));
}

function observed(path: string, handle: UnaryHandler, { statistics, now, tracer }: ObserveOptions): UnaryHandler {
  const name = path.slice(1);
  const [service = '', method = ''] = name.split('/');
  const totalRequests = statistics.counter(`ratelimit_server.${method}.total_requests`);
  const observation: Observation = {
    name,
    attributes: { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method },
    responseTime: statistics.timer(`ratelimit_server.${method}.response_time`),
    now,
    tracer,
  };
  function handleObserved(message: Uint8Array, call: UnaryCall): void {
    totalRequests.add(1);
    const observedCall = new ObservedCall(call, observation);
    try {
      handle(message, observedCall);
    } catch (error) {
      observedCall.ended(GrpcStatus.INTERNAL);
      throw error;
    }
  }
  function unhandled(call: UnaryCall, status: GrpcStatus): void {
    totalRequests.add(1);
    new ObservedCall(call, observation).ended(status);
  }
  return Object.assign(handleObserved, { unhandled });
}

/** What the observed calls of one method share. */
interface Observation {
  /** The full name of the method, without the leading slash. */
  readonly name: string;
  /** The attributes of each span. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly responseTime: Timer;
  readonly now: () => number;
  readonly tracer: Tracer | undefined;
}

/** The statuses for which a server span counts as failed (OpenTelemetry's semantic conventions for RPC). */
const SERVER_ERRORS: ReadonlySet<GrpcStatus> = new Set([
  GrpcStatus.UNKNOWN,
  GrpcStatus.DEADLINE_EXCEEDED,
  GrpcStatus.UNIMPLEMENTED,
  GrpcStatus.INTERNAL,
  GrpcStatus.UNAVAILABLE,
]);

/** Forwards a call to its transport and records its end. One object per call, traced or not: this is the hot path. */
class ObservedCall implements UnaryCall, TraceCarrier, Cancellable {
  readonly #call: UnaryCall;
  readonly #observation: Observation;
  readonly trace: CallTrace | undefined;
  #isOver = false;
  #work: Cancellable | undefined;

  constructor(call: UnaryCall, observation: Observation) {
    this.#call = call;
    this.#observation = observation;
    this.trace = observation.tracer?.begin(observation.name, observation.attributes, this);
  }

  reply(message: Uint8Array): void {
    this.#call.reply(message);
    this.ended(GrpcStatus.OK);
  }

  fail(status: GrpcStatus, message: string): void {
    this.#call.fail(status, message);
    this.ended(status);
  }

  onCancel(work: Cancellable): void {
    this.#work = work;
    this.#call.onCancel(this);
  }

  cancel(cause: CancelCause): void {
    this.ended(cause === 'cancelled' ? GrpcStatus.CANCELLED : GrpcStatus.DEADLINE_EXCEEDED);
    this.#work?.cancel(cause);
  }

  get peer(): UnaryCall['peer'] {
    return this.#call.peer;
  }

  get receivedAt(): number {
    return this.#call.receivedAt;
  }

  /** Since the request was complete. The clocks are read at most once per turn: one may seem to be behind the other. */
  get ageMs(): number {
    return Math.max(0, this.#observation.now() - this.#call.receivedAt);
  }

  metadata(name: string): string | undefined {
    return this.#call.metadata?.(name);
  }

  /**
   * Records the end of the call; the transport may have answered it past this object. Only the first call has an effect: a handler may
   * reply to a call that was cancelled meanwhile.
   */
  ended(status: GrpcStatus): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#observation.responseTime.record(this.ageMs);
    this.trace?.ended({ 'rpc.grpc.status_code': status }, SERVER_ERRORS.has(status));
  }
}
