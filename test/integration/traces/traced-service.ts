import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { callByHand } from '../../support/clients/call-by-hand';
import { requestMessage } from '../../support/clients/grpc-client';
import type { Span } from '../../support/servers/read-spans';
import { Shop } from '../../e2e/shop';

const RULES = 'domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1000 } }]';
const REQUEST = requestMessage('shop', ['k=v']);
/** The same request for /json. */
const JSON_REQUEST = '{"domain":"shop","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';

export type Headers = Readonly<Record<string, string>>;

/** The built service with tracing and a short export interval, and clients of it. */
export class TracedService implements AsyncDisposable {
  private constructor(readonly shop: Shop) {}

  static async start(env: Headers): Promise<TracedService> {
    const tracing = { DISABLE_STATS: 'true', TRACING_ENABLED: 'true', OTEL_BSP_SCHEDULE_DELAY: '20' };
    return new TracedService(await Shop.start({ env: { ...tracing, ...env } }, RULES));
  }

  /** Calls the service over gRPC with these headers. @returns the status of the response */
  call(headers: Headers = {}, message: Uint8Array = REQUEST): Promise<number> {
    return callByHand(this.shop.weir.grpcAddress, SHOULD_RATE_LIMIT, message, headers);
  }

  /** Calls the service over HTTP. */
  json(headers: Headers, body = JSON_REQUEST): Promise<Response> {
    return this.shop.weir.http('/json', { method: 'POST', body, headers });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shop[Symbol.asyncDispose]();
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
  const [call, window] = (['server', 'client'] as const).map((each) => spans.find(({ kind }) => kind === each));
  if (!call || !window || spans.length !== 2) throw new Error(`there are ${spans.length} spans`);
  return [call, window];
}
