import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { RateLimitResponse, RateLimitResponse_Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { requestMessage } from '../support/clients/grpc-client';

/** Milliseconds between two calls. */
const INTERVAL = 5;
/** One call in so many asks for a key that is over its limit. */
const BLOCKED_EVERY = 10;
const LIMIT = 1_000_000_000;
/** Milliseconds to wait for the last answers. */
const LAST_ANSWERS = 60_000;

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
  readonly #prefixed = [call('counted'), call('blocked')] as const;
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
    this.#latencies.length = 0;
    this.#wrong.length = 0;
    this.#errors.length = 0;
    this.#inRun = 0;
    this.#begin = performance.now();
    this.#callWhatIsDue();
  }

  /** Sends no further calls, and waits for the answers. */
  async stop(): Promise<Experience> {
    clearTimeout(this.#timer);
    const sent = this.#inRun;
    const end = performance.now() + LAST_ANSWERS;
    while (this.#pending > 0 && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 5));
    return {
      sent,
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
    for (;;) {
      const due = this.#begin + this.#inRun * INTERVAL;
      const wait = due - performance.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.#callWhatIsDue(), wait);
        return;
      }
      this.#inRun += 1;
      this.#call(due);
    }
  }

  #call(due: number): void {
    if (this.#session.closed) {
      this.#errors.push('no connection');
      return;
    }
    this.#sent += 1;
    const isBlocked = this.#sent % BLOCKED_EVERY === 0;
    if (!isBlocked) this.#counted += 1;
    this.#pending += 1;
    const stream = this.#session.request(HEADERS);
    const parts: Buffer[] = [];
    let status: unknown;
    stream.on('response', (headers) => (status = headers['grpc-status']));
    stream.on('trailers', (trailers) => (status = trailers['grpc-status']));
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('error', (error) => this.#errors.push(String(error)));
    stream.once('close', () => {
      this.#pending -= 1;
      if (status !== '0') {
        this.#errors.push(`status ${String(status)}`);
        return;
      }
      this.#latencies.push(performance.now() - due);
      this.#check(RateLimitResponse.decode(Buffer.concat(parts).subarray(5)), isBlocked);
    });
    stream.end(this.#prefixed[isBlocked ? 1 : 0]);
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

const HEADERS = {
  ':method': 'POST',
  ':path': SHOULD_RATE_LIMIT,
  'content-type': 'application/grpc',
  te: 'trailers',
};

function call(key: string): Buffer {
  const message = requestMessage('well-behaved', [`${key}=1`]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
