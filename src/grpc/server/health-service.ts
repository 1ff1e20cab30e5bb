import { type Observable, type Subscription, distinctUntilChanged, map } from 'rxjs';
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthListResponse,
} from '../../gen/grpc/health/v1/health';
import type { Latest } from '../../streams/latest';
import { GrpcStatus, type StreamingCall, type StreamingMethods, type UnaryCall, type UnaryMethods } from '../method';

const SERVICE = '/grpc.health.v1.Health';
/**
 * The names of the server as a whole (the empty one, and the one that the Go service uses), and of the rate limit
 * service.
 */
const NAMES: readonly string[] = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService'];

/** How many calls a new status is sent to in one turn of the event loop: each may be a write to a socket. */
const SENT_PER_TURN = 256;

/** The names are short, and what a large message consists of would take long to skip. */
const MAX_REQUEST_BYTES = 1_024;

interface Healthy {
  readonly healthy: boolean;
}

function statusOf({ healthy }: Healthy): ServingStatus {
  return healthy ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
}

/**
 * `grpc.health.v1.Health`. All known names have the same status: the health of the whole service.
 *
 * @param health$ emits the current health on subscription, then every change; the first Watch subscribes to it, until
 * no Watch is open
 */
export function healthService(health$: Latest<Healthy>): {
  readonly unary: UnaryMethods;
  readonly streaming: StreamingMethods;
} {
  const status$ = health$.pipe(map(statusOf), distinctUntilChanged());
  const watchers = new Watchers(status$);
  function watch(message: Uint8Array, call: StreamingCall): void {
    const name = readName(message, call);
    if (name === undefined) return;
    // The stream stays open: by the protocol, an unknown name may become known later.
    if (!NAMES.includes(name)) return call.send(encode(ServingStatus.SERVICE_UNKNOWN));
    watchers.add(call);
  }

  const unary: UnaryMethods = new Map([
    [
      `${SERVICE}/Check`,
      (message, call) => {
        const name = readName(message, call);
        if (name === undefined) return;
        if (!NAMES.includes(name)) call.fail(GrpcStatus.NOT_FOUND, 'unknown service');
        else call.reply(encode(statusOf(health$.value)));
      },
    ],
    [
      `${SERVICE}/List`,
      (_message, call) => {
        const status = statusOf(health$.value);
        const statuses = Object.fromEntries(NAMES.map((name) => [name, { status }]));
        call.reply(HealthListResponse.encode({ statuses }).finish());
      },
    ],
  ]);

  const streaming: StreamingMethods = new Map([
    [
      `${SERVICE}/Watch`,
      {
        takesOneMessage: true,
        begin: (call) => ({ message: (message) => watch(message, call), ended() {} }),
      },
    ],
  ]);
  return { unary, streaming };
}

/**
 * The calls that watch the status, in one subscription: RxJS looks through all subscriptions when one ends, so that the
 * end of thousands of calls would take seconds.
 */
class Watchers {
  readonly #status$: Observable<ServingStatus>;
  readonly #calls = new Set<StreamingCall>();
  #subscription: Subscription | undefined;
  #status: ServingStatus = ServingStatus.NOT_SERVING;
  /** The calls to which the new status is still to be sent. */
  #waiting: readonly StreamingCall[] = [];

  constructor(status$: Observable<ServingStatus>) {
    this.#status$ = status$;
  }

  /** Sends the status to the call now, and whenever it changes until the call is cancelled. */
  add(call: StreamingCall): void {
    this.#subscription ??= this.#status$.subscribe((status) => this.#changed(status));
    call.send(encode(this.#status));
    this.#calls.add(call);
    call.onCancel({ cancel: () => this.#remove(call) });
  }

  #remove(call: StreamingCall): void {
    this.#calls.delete(call);
    if (this.#calls.size > 0) return;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    this.#status = ServingStatus.NOT_SERVING;
  }

  #changed(status: ServingStatus): void {
    const isSending = this.#waiting.length > 0;
    this.#status = status;
    this.#waiting = [...this.#calls];
    if (!isSending) this.#send();
  }

  #send(): void {
    const message = encode(this.#status);
    for (const call of this.#waiting.slice(0, SENT_PER_TURN)) call.send(message);
    this.#waiting = this.#waiting.slice(SENT_PER_TURN);
    if (this.#waiting.length > 0) setImmediate(() => this.#send());
  }
}

function encode(status: ServingStatus): Uint8Array {
  return HealthCheckResponse.encode({ status }).finish();
}

/** The name that a request asks for; undefined after the call has failed, because the message cannot be read. */
function readName(message: Uint8Array, call: Pick<UnaryCall, 'fail'>): string | undefined {
  if (message.length > MAX_REQUEST_BYTES) {
    call.fail(GrpcStatus.RESOURCE_EXHAUSTED, `a HealthCheckRequest may have at most ${MAX_REQUEST_BYTES} bytes`);
    return undefined;
  }
  try {
    return HealthCheckRequest.decode(message).service;
  } catch {
    call.fail(GrpcStatus.INTERNAL, 'invalid HealthCheckRequest');
    return undefined;
  }
}
