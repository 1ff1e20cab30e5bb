import {
  type Context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  createTraceState,
  trace,
} from '@opentelemetry/api';
import type { Tracer as SpanMaker } from '@opentelemetry/api';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { Log } from '../../streams/log';
import type { CallTrace, TraceCarrier, Tracer } from '../../streams/tracer';
import { PARENT_FIELDS, type Parent, type Wish, readParent } from './parent';
import { watchedExporter } from './watched-exporter';

export interface TracingOptions {
  readonly protocol: 'http' | 'grpc';
  readonly serviceName: string;
  /** Empty: none. */
  readonly serviceNamespace: string;
  readonly serviceInstanceId: string;
  /** The share of calls that are traced where the caller has not decided, from 0 to 1. */
  readonly samplingRate: number;
  readonly log: Log;
}

export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what is left, as far as there is time. Never rejects. */
  shutdown(): Promise<void>;
}

type Attributes = Readonly<Record<string, string | number>>;

/**
 * Traces to an OpenTelemetry collector. What is not in the options comes from the standard variables of the exporters and of
 * the batches, `OTEL_EXPORTER_OTLP_*`, `OTEL_BSP_*`, `OTEL_RESOURCE_ATTRIBUTES`. To be loaded only when it is used.
 */
export async function startOtlpTracing(options: TracingOptions): Promise<Tracing> {
  const exporter = watchedExporter(await loadExporter(options.protocol), options.log);
  const { serviceName, serviceNamespace, serviceInstanceId } = options;
  const own = resourceFromAttributes({
    'service.name': serviceName,
    ...(serviceNamespace !== '' && { 'service.namespace': serviceNamespace }),
    'service.instance.id': serviceInstanceId,
  });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(own),
    // Whoever is not traced never gets here: to make a span and drop it costs more than to decide without one.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  return {
    tracer: new OtlpTracer(provider.getTracer('weir'), options.samplingRate),
    // It rejects when the last batch could not be sent, which the log has been told.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}

async function loadExporter(protocol: 'http' | 'grpc'): Promise<SpanExporter> {
  if (protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc');
    return new OTLPTraceExporter();
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/** Decides by the caller's own decision; where there is none, by the rate. */
class OtlpTracer implements Tracer {
  readonly fields = PARENT_FIELDS;

  constructor(
    private readonly maker: SpanMaker,
    private readonly samplingRate: number,
  ) {}

  begin(name: string, attributes: Attributes, carrier: TraceCarrier): CallTrace | undefined {
    const parent = readParent(carrier);
    if (!(parent?.isSampled ?? Math.random() < this.samplingRate)) return undefined;
    return new OtlpCallTrace(this.maker, name, attributes, contextOf(parent));
  }
}

function contextOf(parent: Parent | Wish | undefined): Context {
  if (parent === undefined || !('traceId' in parent)) return ROOT_CONTEXT;
  const { traceId, spanId, state } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  });
}

/** The one trip to a counter store that a call's window makes; times in Unix milliseconds. */
interface StoreExchange {
  readonly begun: number;
  readonly ended: number | undefined;
  readonly operations: number;
  readonly calls: number;
  readonly hasFailed: boolean;
}

/** Its spans are made when the call is over, from the times that were written down. */
class OtlpCallTrace implements CallTrace {
  readonly #begun = unixNow();
  #exchange: StoreExchange | undefined;

  constructor(
    private readonly maker: SpanMaker,
    private readonly name: string,
    private readonly attributes: Attributes,
    private readonly parent: Context,
  ) {}

  storeAsked(operations: number, calls: number): void {
    this.#exchange = { begun: unixNow(), ended: undefined, operations, calls, hasFailed: false };
  }

  storeAnswered(hasFailed: boolean): void {
    if (this.#exchange !== undefined) this.#exchange = { ...this.#exchange, ended: unixNow(), hasFailed };
  }

  ended(attributes: Attributes, hasFailed: boolean): void {
    const { maker, name, parent } = this;
    const options = {
      kind: SpanKind.SERVER,
      startTime: this.#begun,
      attributes: { ...this.attributes, ...attributes },
    };
    const span = maker.startSpan(name, options, parent);
    if (hasFailed) span.setStatus({ code: SpanStatusCode.ERROR });
    const within = trace.setSpan(parent, span);
    if (this.#exchange !== undefined) this.#addExchange(this.#exchange, within);
    span.end(unixNow());
  }

  #addExchange({ begun, ended, operations, calls, hasFailed }: StoreExchange, within: Context): void {
    const attributes = { 'weir.window.operations': operations, 'weir.window.calls': calls };
    const options = { kind: SpanKind.CLIENT, startTime: begun, attributes };
    const span = this.maker.startSpan('counter store pipeline', options, within);
    if (hasFailed) span.setStatus({ code: SpanStatusCode.ERROR });
    // A call that gave up waiting ends before the store has answered.
    span.end(ended ?? unixNow());
  }
}

/** Unix milliseconds with fractions: a decision takes less than one. */
function unixNow(): number {
  return performance.timeOrigin + performance.now();
}
