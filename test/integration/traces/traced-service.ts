import { join } from 'node:path';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { callByHand } from '../../support/clients/call-by-hand';
import { requestMessage } from '../../support/clients/grpc-client';
import { Daemon } from '../../support/processes/daemon';
import { freePorts } from '../../support/processes/free-ports';
import { isListening } from '../../support/processes/is-listening';
import { OtlpReceiver } from '../../support/servers/otlp-receiver';
import type { Span } from '../../support/servers/read-spans';
import { Shop } from '../../e2e/shop';

const COLLECTOR = join(
  __dirname,
  `../../../.servers/rotel/node_modules/@streamfold/rotel-${process.platform}-${process.arch}/bin/rotel-agent`,
);

/** A real OpenTelemetry collector, which decodes spans and immediately forwards them, encoded again, to this process. */
export class CollectorProcess extends Daemon {
  /** @param ports over HTTP with protobuf, and over gRPC */
  private constructor(
    readonly ports: Readonly<Record<'http' | 'grpc', number>>,
    readonly forwarded: OtlpReceiver,
  ) {
    super();
  }

  static async start(ports?: CollectorProcess['ports']): Promise<CollectorProcess> {
    const [http, grpc] = await freePorts(2);
    return new CollectorProcess(ports ?? { http, grpc }, await OtlpReceiver.http()).started();
  }

  async run(): Promise<void> {
    const { http, grpc } = this.ports;
    this.launch(
      ...[COLLECTOR, 'start', '--disable-batching'],
      ...[`--otlp-http-endpoint=127.0.0.1:${http}`, `--otlp-grpc-endpoint=127.0.0.1:${grpc}`],
      ...['--exporter=otlp', '--otlp-exporter-protocol=http', `--otlp-exporter-endpoint=${this.forwarded.url}`],
    );
    await this.until('it listens', async () => (await isListening(http)) && (await isListening(grpc)));
  }

  /** The forwarded spans, in the order of arrival. */
  get spans(): readonly Span[] {
    return this.forwarded.spans;
  }

  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url(protocol: 'http' | 'grpc'): string {
    return `http://127.0.0.1:${this.ports[protocol]}`;
  }

  /** The spans of a trace, once at least `count` have arrived. */
  async trace(traceId: string, count: number): Promise<readonly Span[]> {
    const found = (): readonly Span[] => this.spans.filter((span) => span.traceId === traceId);
    await this.until(`there are ${count} spans of ${traceId}`, () => found().length >= count);
    return found();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.forwarded[Symbol.asyncDispose]();
  }
}

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
