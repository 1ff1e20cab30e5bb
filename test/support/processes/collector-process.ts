import { join } from 'node:path';
import { OtlpReceiver } from '../servers/otlp-receiver';
import type { MetricPoint } from '../servers/read-metrics';
import type { Span } from '../servers/read-spans';
import { Daemon } from './daemon';
import { freePorts } from './free-ports';
import { isListening } from './is-listening';

const COLLECTOR = join(
  __dirname,
  `../../../.servers/rotel/node_modules/@streamfold/rotel-${process.platform}-${process.arch}/bin/rotel-agent`,
);

/**
 * A real OpenTelemetry collector, which decodes spans and metrics and immediately forwards them, encoded again, to this
 * process.
 */
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

  /** The points of the forwarded metrics, in the order of arrival. */
  get metrics(): readonly MetricPoint[] {
    return this.forwarded.metrics;
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
