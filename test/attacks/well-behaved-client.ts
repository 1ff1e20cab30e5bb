import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { type RateLimitResponse, RateLimitResponse_Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { requestMessage } from '../support/clients/grpc-client';
import { openCall, prefixed } from '../support/clients/http2-connection';
import { ruleResource } from '../support/data/rule-resources';
import { domainConfig, limit } from '../support/data/rules';
import { until } from '../support/waiting/until';
import type { Target } from './peers';

/** Milliseconds between two calls. */
const INTERVAL = 5;
/** One call in so many asks for a key that is over its limit. */
const BLOCKED_EVERY = 10;
const LIMIT = 1_000_000_000;
const COUNTED = prefixed(requestMessage('well-behaved', ['counted=1']));
const BLOCKED = prefixed(requestMessage('well-behaved', ['blocked=1']));

/** The rules for the calls of {@link WellBehavedClient}. */
export const WELL_BEHAVED_RULES = `domain: well-behaved
descriptors:
  - { key: counted, rate_limit: { unit: year, requests_per_unit: ${LIMIT} } }
  - { key: blocked, rate_limit: { unit: year, requests_per_unit: 0 } }
`;

/** The same limits for a management server, without a warning in the log. */
export const WELL_BEHAVED_RESOURCE = ruleResource(
  'well-behaved',
  domainConfig(
    'well-behaved',
    { key: 'counted', rateLimit: limit(LIMIT, 'YEAR') },
    { key: 'blocked', value: '1', rateLimit: limit(0, 'YEAR') },
  ),
);

/**
 * A client that does nothing wrong: 200 calls a second on a connection of its own, whether or not the earlier ones have
 * been answered. It knows the answer to each: every tenth call is over its limit, and the others count one hit each.
 */
export class WellBehavedClient implements Disposable {
  readonly #session: ClientHttp2Session;
  readonly #begin = performance.now();
  readonly #remaining = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #counted = 0;
  sent = 0;
  answered = 0;
  /** Answers with a wrong code or count. */
  readonly wrong: string[] = [];
  /** Why calls failed. */
  readonly errors: string[] = [];

  private constructor(session: ClientHttp2Session) {
    this.#session = session;
    session.on('error', (error) => this.errors.push(String(error)));
    this.#callWhatIsDue();
  }

  static async connect({ weir, ca }: Target): Promise<WellBehavedClient> {
    const scheme = ca === undefined ? 'http' : 'https';
    const session = connect(`${scheme}://${weir.grpcAddress}`, { ca });
    await once(session, 'connect');
    return new WellBehavedClient(session);
  }

  /** Sends no further calls, and waits for the answers. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await until('all calls have ended', () => this.answered + this.errors.length >= this.sent);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#session.destroy();
  }

  #callWhatIsDue(): void {
    const due = (performance.now() - this.#begin) / INTERVAL;
    while (this.sent <= due) void this.#call();
    this.#timer = setTimeout(() => this.#callWhatIsDue(), INTERVAL);
  }

  async #call(): Promise<void> {
    this.sent += 1;
    if (this.#session.closed) {
      this.errors.push('no connection');
      return;
    }
    const isBlocked = this.sent % BLOCKED_EVERY === 0;
    if (!isBlocked) this.#counted += 1;
    const { stream, closed, status, response } = openCall(this.#session);
    stream.end(isBlocked ? BLOCKED : COUNTED);
    await closed;
    if (status() === 0) {
      this.answered += 1;
      this.#check(response(), isBlocked);
    } else this.errors.push(`status ${status()}`);
  }

  #check({ overallCode, statuses }: RateLimitResponse, isBlocked: boolean): void {
    const remaining = statuses[0]?.limitRemaining ?? NaN;
    const isRight = isBlocked
      ? overallCode === RateLimitResponse_Code.OVER_LIMIT && remaining === 0
      : overallCode === RateLimitResponse_Code.OK && this.#isNew(remaining);
    if (!isRight) this.wrong.push(`${overallCode} with ${remaining} remaining${isBlocked ? ' (over its limit)' : ''}`);
  }

  /** Whether the count is one of the calls sent so far, and no other answer has had it. */
  #isNew(remaining: number): boolean {
    const isPossible = remaining < LIMIT && remaining >= LIMIT - this.#counted && !this.#remaining.has(remaining);
    this.#remaining.add(remaining);
    return isPossible;
  }
}
