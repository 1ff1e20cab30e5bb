import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { type WeirOptions, WeirProcess } from '../support/processes/weir-process';

/** The rules of a {@link Shop}: one limit, which no test reaches. */
export const SHOP = 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n';
export const LIMIT = 1_000_000;

/** The built service with a rule folder of its own and a gRPC client. */
export class Shop implements AsyncDisposable {
  private constructor(
    readonly weir: WeirProcess,
    readonly rules: RuleFolder,
    readonly client: RateLimitClient,
  ) {}

  /** @param text the rule file `shop.yaml`; without it, there is no rule file */
  static async start({ env, ...options }: WeirOptions = {}, text: string | undefined = SHOP): Promise<Shop> {
    const rules = await RuleFolder.with({ 'shop.yaml': text });
    try {
      const weir = await WeirProcess.start({ ...options, env: { ...rules.env, ...env } });
      return new Shop(weir, rules, new RateLimitClient(weir.grpcAddress));
    } catch (error) {
      await rules[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Counts hits for a user, and returns the remaining hits of the limit. */
  async hit(user = 'x', hits = 1): Promise<number | undefined> {
    return (await this.client.shouldRateLimit('shop', [`user=${user}`], hits)).statuses[0]?.limitRemaining;
  }

  /** A call of `/json` for a user. */
  json(user: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: user }] }] });
    return this.weir.http('/json', { method: 'POST', body, headers });
  }

  /** Waits until a call is in flight, or was. */
  called(): Promise<boolean> {
    const name = 'ratelimit_server.ShouldRateLimit.total_requests';
    return this.weir.until('a call to be handled', async () => ((await this.weir.statistics()).get(name) ?? 0) > 0);
  }

  /**
   * Sends calls, each of which is answered and logged in some kilobytes, until lines of an output that is not read are
   * dropped.
   */
  async dropLines(statistic: string): Promise<void> {
    const descriptors = Array.from({ length: 50 }, (_, index) => `user=${index}`);
    await this.weir.until('lines to be dropped', async () => {
      // At once: one after the other, a busy machine needs a turn of both processes for each.
      const calls = Array.from({ length: 50 }, () => this.client.shouldRateLimit('shop', descriptors));
      for (const { statuses } of await Promise.all(calls)) expect(statuses).toHaveLength(descriptors.length);
      return ((await this.weir.statistics()).get(statistic) ?? 0) > 0;
    });
  }

  /** Ends the service, and expects that it has drained. */
  async drain(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.weir.signal(signal);
    expect(await this.weir.exited).toBe(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client[Symbol.dispose]();
    await this.weir[Symbol.asyncDispose]();
    await this.rules[Symbol.asyncDispose]();
  }
}

/** Callers that call without a pause until they are stopped; each ends at its first failure. */
export class Load implements AsyncDisposable {
  readonly #callers: Promise<void>[];
  #isRunning = true;
  answered = 0;
  readonly failures: unknown[] = [];

  constructor(call: () => Promise<unknown>, callers: number) {
    this.#callers = Array.from({ length: callers }, () => this.#repeat(call));
  }

  async #repeat(call: () => Promise<unknown>): Promise<void> {
    try {
      while (this.#isRunning) {
        await call();
        this.answered += 1;
      }
    } catch (error) {
      this.failures.push(error);
    }
  }

  /** Waits until so many further calls were answered, or one has failed. */
  async more(count: number, weir: WeirProcess): Promise<void> {
    const before = this.answered;
    await weir.until('calls to be answered', () => this.answered >= before + count || this.failures.length > 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#callers);
  }
}
