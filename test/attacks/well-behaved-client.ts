import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { type RateLimitResponse, RateLimitResponse_Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { requestMessage } from '../support/clients/grpc-client';
import { openCall, prefixed } from './peers';

/** Milliseconds between two calls. */
const INTERVAL = 5;
/** One call in so many asks for a key that is over its limit. */
const BLOCKED_EVERY = 10;
const LIMIT = 1_000_000_000;
/** Milliseconds to wait for the last answers. */
const LAST_ANSWERS = 60_000;
const COUNTED = prefixed(requestMessage('well-behaved', ['counted=1']));
const BLOCKED = prefixed(requestMessage('well-behaved', ['blocked=1']));

/** The rules for the calls of {@link WellBehavedClient}. */
export const WELL_BEHAVED_RULES = `domain: well-behaved
descriptors:
  - key: counted
    rate_limit: { unit: year, requests_per_unit: ${LIMIT} }
  - key: blocked
    value: '1'
    rate_limit: { unit: year, requests_per_unit: 0 }
`;

/** The gRPC listener that a client connects to. */
export interface ClientTarget {
  readonly url: string;
  /** Over TLS: the certificate authority to trust. */
  readonly ca?: string;
}

/** What the client saw. */
export interface Experience {
  readonly sent: number;
  readonly answered: number;
  /** Answers with a wrong code or count. */
  readonly wrong: readonly string[];
  /** Why calls failed. */
  readonly errors: readonly string[];
  /** Of the answered calls, in milliseconds from when each was due; ascending. */
  readonly latencies: readonly number[];
}

/**
 * A client that does nothing wrong: 200 calls a second on a connection of its own, whether or not the earlier ones have been
 * answered. It knows the answer to each: every tenth call is over its limit, and the others count one hit each.
 */
export class WellBehavedClient implements Disposable {
  readonly #session: ClientHttp2Session;
  readonly #latencies: number[] = [];
  readonly #wrong: string[] = [];
  readonly #errors: string[] = [];
  readonly #remaining = new Set<number>();
  #counted = 0;
  #sent = 0;
  #pending = 0;
  #timer: NodeJS.Timeout | undefined;
  #begin = 0;
  #inRun = 0;

  private constructor(session: ClientHttp2Session) {
    this.#session = session;
    session.on('error', (error) => this.#errors.push(String(error)));
  }

  static async connect({ url, ca }: ClientTarget): Promise<WellBehavedClient> {
    const client = new WellBehavedClient(connect(url, ca === undefined ? {} : { ca }));
    await once(client.#session, 'connect');
    return client;
  }

  /** How many calls have been answered since the start. */
  get answered(): number {
    return this.#latencies.length;
  }

  /** Begins to call. Forgets what it saw before. */
  start(): void {
    for (const seen of [this.#latencies, this.#wrong, this.#errors]) seen.length = 0;
    this.#inRun = 0;
    this.#begin = performance.now();
    this.#callWhatIsDue();
  }

  /** Sends no further calls, and waits for the answers. */
  async stop(): Promise<Experience> {
    clearTimeout(this.#timer);
    const end = performance.now() + LAST_ANSWERS;
    while (this.#pending > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
    return {
      sent: this.#inRun,
      answered: this.#latencies.length,
      wrong: [...this.#wrong],
      errors: [...this.#errors],
      latencies: this.#latencies.toSorted((a, b) => a - b),
    };
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#session.destroy();
  }

  #callWhatIsDue(): void {
    const now = performance.now();
    for (let due; (due = this.#begin + this.#inRun * INTERVAL) <= now; this.#inRun += 1) void this.#call(due);
    this.#timer = setTimeout(() => this.#callWhatIsDue(), INTERVAL);
  }

  async #call(due: number): Promise<void> {
    if (this.#session.closed) {
      this.#errors.push('no connection');
      return;
    }
    this.#sent += 1;
    const isBlocked = this.#sent % BLOCKED_EVERY === 0;
    if (!isBlocked) this.#counted += 1;
    this.#pending += 1;
    const { stream, closed, status, response } = openCall(this.#session);
    stream.on('error', (error) => this.#errors.push(String(error)));
    stream.end(isBlocked ? BLOCKED : COUNTED);
    await closed;
    this.#pending -= 1;
    if (status() === 'OK') {
      this.#latencies.push(performance.now() - due);
      this.#check(response(), isBlocked);
    } else this.#errors.push(`status ${status()}`);
  }

  #check({ overallCode, statuses }: RateLimitResponse, isBlocked: boolean): void {
    const remaining = statuses[0]?.limitRemaining ?? NaN;
    const isRight = isBlocked
      ? overallCode === RateLimitResponse_Code.OVER_LIMIT && remaining === 0
      : overallCode === RateLimitResponse_Code.OK && this.#isNew(remaining);
    if (!isRight) this.#wrong.push(`${overallCode} with ${remaining} remaining${isBlocked ? ' (over its limit)' : ''}`);
  }

  /** Whether the count is one of the calls sent so far, and no other answer has had it. */
  #isNew(remaining: number): boolean {
    const isPossible = remaining < LIMIT && remaining >= LIMIT - this.#counted && !this.#remaining.has(remaining);
    this.#remaining.add(remaining);
    return isPossible;
  }
}
