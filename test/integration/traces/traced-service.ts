import { Client, Metadata, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { RateLimitRequest } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import type { Span } from '../../support/servers/read-spans';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';

const RULES = 'domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1000 } }]';

export const REQUEST = RateLimitRequest.encode({
  domain: 'shop',
  descriptors: [
    { entries: [{ key: 'k', value: 'v' }], limit: undefined, hitsAddend: undefined, isNegativeHits: false },
  ],
  hitsAddend: 0,
}).finish();

/** The same request for /json. */
export const JSON_REQUEST = '{"domain":"shop","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';

export type Headers = Readonly<Record<string, string>>;

/** The built service with tracing and a short export interval, and clients of it. */
export class TracedService implements AsyncDisposable {
  readonly #rules: RuleFolder;
  readonly #client: Client;

  private constructor(
    readonly weir: WeirProcess,
    rules: RuleFolder,
  ) {
    this.#rules = rules;
    this.#client = new Client(weir.grpcAddress, credentials.createInsecure());
  }

  static async start(env: Headers): Promise<TracedService> {
    const rules = await RuleFolder.with({ 'shop.yaml': RULES });
    try {
      const weir = await WeirProcess.start({
        env: {
          ...rules.env,
          DISABLE_STATS: 'true',
          TRACING_ENABLED: 'true',
          OTEL_BSP_SCHEDULE_DELAY: '20',
          ...env,
        },
      });
      return new TracedService(weir, rules);
    } catch (error) {
      await rules[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Calls the service over gRPC with these headers. @returns the status of the response */
  call(headers: Headers = {}, { message = REQUEST, deadline = Infinity } = {}): Promise<status> {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        SHOULD_RATE_LIMIT,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.from(message),
        metadata,
        { deadline },
        (error: ServiceError | null) => resolve(error?.code ?? status.OK),
      );
    });
  }

  /** Calls the service over HTTP. */
  json(headers: Headers, body = JSON_REQUEST): Promise<Response> {
    return this.weir.http('/json', { method: 'POST', body, headers });
  }

  /** Stops the service with SIGTERM; rejects unless it exits with 0. */
  async end(): Promise<void> {
    this.weir.signal('SIGTERM');
    const code = await this.weir.exited;
    if (code !== 0) throw new Error(`the service exited with ${code}:\n${this.weir.output}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close();
    await this.weir[Symbol.asyncDispose]();
    await this.#rules[Symbol.asyncDispose]();
  }
}

/** The id of the caller's span in every trace of the tests. */
export const CALLER = 'b7ad6b7169203331';

let traces = 0;

/** The id of a new trace. */
export function newTraceId(): string {
  traces += 1;
  return traces.toString(16).padStart(32, 'a');
}

/** The W3C header of a caller that samples its trace. */
export function traceparent(traceId: string): Headers {
  return { traceparent: `00-${traceId}-${CALLER}-01` };
}

/** The span of a call and that of its pipeline window. */
export function callAndWindow(spans: readonly Span[]): readonly [call: Span, window: Span] {
  const call = spans.find(({ kind }) => kind === 'server');
  const window = spans.find(({ kind }) => kind === 'client');
  if (call === undefined || window === undefined || spans.length !== 2)
    throw new Error(`there are ${spans.length} spans`);
  return [call, window];
}
