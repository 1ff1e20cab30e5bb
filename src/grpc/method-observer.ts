import type { Counter } from '../statistics/counter';
import type { Statistics } from '../statistics/statistics';
import type { Timer } from '../statistics/timer';
import type { CallTrace, Tracer } from '../streams/ports/tracer';
import { GrpcStatus, type UnaryCall } from './method';

export interface ObserveOptions {
  readonly statistics: Statistics;
  /** The monotonic clock of {@link UnaryCall.receivedAt}: milliseconds with fractions. */
  readonly now: () => number;
  /** Chooses the calls to trace; undefined when tracing is off. */
  readonly tracer?: Tracer | undefined;
}

/** The statuses for which a server span counts as failed (OpenTelemetry's semantic conventions for RPC). */
const SERVER_ERRORS: ReadonlySet<GrpcStatus> = new Set([
  GrpcStatus.UNKNOWN,
  GrpcStatus.DEADLINE_EXCEEDED,
  GrpcStatus.UNIMPLEMENTED,
  GrpcStatus.INTERNAL,
  GrpcStatus.UNAVAILABLE,
]);

/**
 * Measures and traces the calls of a unary method.
 *
 * - `ratelimit_server.<method>.total_requests` counts the calls as they are handled, or end before that.
 * - `ratelimit_server.<method>.response_time` gets one duration per call, from the complete request to the end of the
 *   call, including failed and cancelled calls, those whose handler throws, and those that end before they are handled.
 * - The calls that the tracer chooses get one span each, named after the method.
 */
export class MethodObserver {
  readonly #totalRequests: Counter;
  readonly #responseTime: Timer;
  /** The full name of the method, without the leading slash. */
  readonly #name: string;
  /** The attributes of each span. */
  readonly #attributes: Readonly<Record<string, string>>;
  readonly #now: () => number;
  readonly #tracer: Tracer | undefined;

  constructor(path: string, { statistics, now, tracer }: ObserveOptions) {
    this.#name = path.slice(1);
    const [service = '', method = ''] = this.#name.split('/');
    this.#totalRequests = statistics.counter(`ratelimit_server.${method}.total_requests`);
    this.#responseTime = statistics.timer(`ratelimit_server.${method}.response_time`);
    this.#attributes = { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method };
    this.#now = now;
    this.#tracer = tracer;
  }

  /** A call with a complete request is handled, or ends before that. Returns its trace, if it is traced. */
  began(call: UnaryCall): CallTrace | undefined {
    this.#totalRequests.add(1);
    if (this.#tracer === undefined) return undefined;
    const carrier = { metadata: (name: string) => call.metadata?.(name), ageMs: this.#ageOf(call) };
    return this.#tracer.begin(this.#name, this.#attributes, carrier);
  }

  /** Must be called once for each call that began. */
  ended(call: UnaryCall, status: GrpcStatus): void {
    this.#responseTime.record(this.#ageOf(call));
    call.trace?.ended({ 'rpc.grpc.status_code': status }, SERVER_ERRORS.has(status));
  }

  /** Since the request was complete. The clocks are read at most once per turn: one may seem to be behind the other. */
  #ageOf(call: UnaryCall): number {
    return Math.max(0, this.#now() - call.receivedAt);
  }
}
