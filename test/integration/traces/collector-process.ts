import { join } from 'node:path';
import { OtlpReceiver } from '../../support/servers/otlp-receiver';
import type { Span } from '../../support/servers/read-spans';
import { freePorts } from '../../support/processes/free-ports';
import { KeptProcess } from '../../support/processes/kept-process';
import { until } from '../../support/waiting/until';
import { isListening } from '../../support/processes/is-listening';

const COLLECTOR = join(
  __dirname,
  `../../../.servers/rotel/node_modules/@streamfold/rotel-${process.platform}-${process.arch}/bin/rotel-agent`,
);
/** The collector's process says who it is before it becomes the collector. */
const WITH_PID = ['sh', '-c', 'echo "pid $$"; exec "$@"', 'sh'];

/** Where a collector takes spans: over HTTP with protobuf, and over gRPC. */
export interface CollectorPorts {
  readonly http: number;
  readonly grpc: number;
}

/** A real collector of OpenTelemetry; what it takes it passes on to here at once, decoded and encoded anew. */
export class CollectorProcess implements AsyncDisposable {
  readonly #exit: OtlpReceiver;
  readonly #kept: KeptProcess;

  private constructor(
    readonly ports: CollectorPorts,
    exit: OtlpReceiver,
  ) {
    this.#exit = exit;
    this.#kept = new KeptProcess([
      ...WITH_PID,
      COLLECTOR,
      'start',
      `--otlp-http-endpoint=127.0.0.1:${ports.http}`,
      `--otlp-grpc-endpoint=127.0.0.1:${ports.grpc}`,
      '--exporter=otlp',
      '--otlp-exporter-protocol=http',
      `--otlp-exporter-endpoint=${exit.url}`,
      '--disable-batching',
    ]);
  }

  /** Starts it, where it is said on these ports. */
  static async start(ports?: CollectorPorts): Promise<CollectorProcess> {
    const collector = new CollectorProcess(ports ?? (await freeCollectorPorts()), await OtlpReceiver.http());
    await collector.until('it listens', async () => {
      const answers = await Promise.all([isListening(collector.ports.http), isListening(collector.ports.grpc)]);
      return answers.every(Boolean);
    });
    return collector;
  }

  /** What it has passed on, in the order of arrival. */
  get spans(): readonly Span[] {
    return this.#exit.spans;
  }

  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url(protocol: keyof CollectorPorts): string {
    return `http://127.0.0.1:${this.ports[protocol]}`;
  }

  /** The spans of a trace once there are that many. */
  async trace(traceId: string, count: number): Promise<readonly Span[]> {
    const found = (): readonly Span[] => this.spans.filter((span) => span.traceId === traceId);
    await this.until(`there are ${count} spans of ${traceId}`, () => found().length >= count);
    return found();
  }

  /** Waits for something that it may say or pass on. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    try {
      await until(what, isSo);
    } catch (error) {
      const state = `${this.spans.length} spans, and it wrote:\n${this.#kept.lines.join('\n')}`;
      throw new Error(`${String(error)}; there are ${state}`, { cause: error });
    }
  }

  /** Stops in the middle of what it does, until {@link resume}. */
  hang(): void {
    process.kill(this.#pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.#pid, 'SIGCONT');
  }

  get #pid(): number {
    const line = this.#kept.lines.find((each) => each.startsWith('pid '));
    if (line === undefined) throw new Error('the collector has not started');
    return Number(line.slice('pid '.length));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept.crash();
    await this.#exit[Symbol.asyncDispose]();
  }
}

/** Ports for a collector that is not there yet. */
export async function freeCollectorPorts(): Promise<CollectorPorts> {
  const [http, grpc] = await freePorts(2);
  return { http, grpc };
}
