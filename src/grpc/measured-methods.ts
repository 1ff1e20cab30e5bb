import type { Statistics } from '../statistics/statistics';
import type { Timer } from '../statistics/timer';
import type { CancelCause } from '../streams/ports/decide';
import type { Cancellable, GrpcStatus, UnaryCall, UnaryHandler, UnaryMethods } from './method';

/**
 * Counts and times the calls of unary methods, `ratelimit_server.<method>.total_requests` and `.response_time` (document 1,
 * section 6): one duration a call, from the handler's beginning to the answer, failed and cancelled calls included.
 *
 * @param now in milliseconds with fractions, from any beginning
 */
export function measuredMethods(methods: UnaryMethods, statistics: Statistics, now: () => number): UnaryMethods {
  return new Map([...methods].map(([path, handle]) => [path, measured(path, handle, statistics, now)] as const));
}

function measured(path: string, handle: UnaryHandler, statistics: Statistics, now: () => number): UnaryHandler {
  const method = path.slice(path.lastIndexOf('/') + 1);
  const totalRequests = statistics.counter(`ratelimit_server.${method}.total_requests`);
  const responseTime = statistics.timer(`ratelimit_server.${method}.response_time`);
  return (message, call) => {
    totalRequests.add(1);
    handle(message, new MeasuredCall(call, responseTime, now));
  };
}

class MeasuredCall implements UnaryCall, Cancellable {
  readonly #call: UnaryCall;
  readonly #responseTime: Timer;
  readonly #now: () => number;
  readonly #begun: number;
  #isOver = false;
  #work: Cancellable | undefined;

  constructor(call: UnaryCall, responseTime: Timer, now: () => number) {
    this.#call = call;
    this.#responseTime = responseTime;
    this.#now = now;
    this.#begun = now();
  }

  reply(message: Uint8Array): void {
    this.#call.reply(message);
    this.#end();
  }

  fail(status: GrpcStatus, message: string): void {
    this.#call.fail(status, message);
    this.#end();
  }

  onCancel(work: Cancellable): void {
    this.#work = work;
    this.#call.onCancel(this);
  }

  cancel(cause: CancelCause): void {
    this.#end();
    this.#work?.cancel(cause);
  }

  metadata(name: string): string | undefined {
    return this.#call.metadata?.(name);
  }

  /** A service may answer a call that was cancelled meanwhile. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#responseTime.record(this.#now() - this.#begun);
  }
}
