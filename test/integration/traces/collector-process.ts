import { join } from 'node:path';
import { Daemon } from '../../support/processes/daemon';
import { freePorts } from '../../support/processes/free-ports';
import { isListening } from '../../support/processes/is-listening';
import { OtlpReceiver } from '../../support/servers/otlp-receiver';
import type { Span } from '../../support/servers/read-spans';

const COLLECTOR = join(
  __dirname,
  `../../../.servers/rotel/node_modules/@streamfold/rotel-${process.platform}-${process.arch}/bin/rotel-agent`,
);

/** The ports on which a collector receives spans: over HTTP with protobuf, and over gRPC. */
export interface CollectorPorts {
  readonly http: number;
  readonly grpc: number;
}

/** A real OpenTelemetry collector, which decodes spans and immediately forwards them, encoded again, to this process. */
export class CollectorProcess extends Daemon {
  private constructor(
    readonly ports: CollectorPorts,
    readonly forwarded: OtlpReceiver,
  ) {
    super();
  }

  /** Starts a collector, on free ports unless ports are given. */
  static async start(ports?: CollectorPorts): Promise<CollectorProcess> {
    return new CollectorProcess(ports ?? (await freeCollectorPorts()), await OtlpReceiver.http()).started();
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
  url(protocol: keyof CollectorPorts): string {
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

/** Ports for a collector that is started later. */
export async function freeCollectorPorts(): Promise<CollectorPorts> {
  const [http, grpc] = await freePorts(2);
  return { http, grpc };
}
