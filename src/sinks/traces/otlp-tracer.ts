import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer as SpanFactory,
  createTraceState,
  trace,
} from '@opentelemetry/api';
import type { CallTrace, TraceCarrier, Tracer, WindowLoad, WindowTrace } from '../../streams/ports/tracer';
import { PARENT_FIELDS, type Parent, type SamplingDecision, readParent } from './parent';

type Attributes = Readonly<Record<string, string | number>>;

/**
 * Samples by the caller's decision or, where it made none, by the sampling rate. Every span that it creates is
 * exported.
 */
export class OtlpTracer implements Tracer {
  readonly #factory: SpanFactory;
  readonly #samplingRate: number;
  /** Unix time in milliseconds. */
  readonly #now: () => number;
  readonly fields = PARENT_FIELDS;

  constructor(factory: SpanFactory, samplingRate: number, now: () => number) {
    this.#factory = factory;
    this.#samplingRate = samplingRate;
    this.#now = now;
  }

  begin(name: string, attributes: Attributes, carrier: TraceCarrier): CallTrace | undefined {
    const parent = readParent(carrier);
    if (!(parent?.isSampled ?? Math.random() < this.#samplingRate)) return undefined;
    const options = { kind: SpanKind.SERVER, startTime: this.#now() - (carrier.ageMs ?? 0), attributes };
    return new OtlpCallTrace(this.#factory.startSpan(name, options, contextOf(parent)), this.#now);
  }

  /**
   * A pipeline window has one span, however many calls it serves. It is a child of the span of the first call and links
   * to the spans of all of them; the spans of the other calls, which may belong to other traces, link to it.
   */
  beginWindow({ operations, calls }: WindowLoad, traces: readonly CallTrace[]): WindowTrace {
    // All call traces were created by this tracer.
    const spans = traces.map((each) => (each as OtlpCallTrace).span);
    const [first, ...others] = spans;
    const attributes = { 'weir.window.operations': operations, 'weir.window.calls': calls };
    const links = spans.map((span) => ({ context: span.spanContext() }));
    const options = { kind: SpanKind.CLIENT, startTime: this.#now(), attributes, links };
    const context = first === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, first);
    const window = this.#factory.startSpan('counter store pipeline', options, context);
    const link = { context: window.spanContext() };
    for (const span of others) span.addLink(link);
    return {
      ended: (failure) => {
        if (failure !== undefined) {
          window.setAttribute('error.type', failure);
          window.setStatus({ code: SpanStatusCode.ERROR });
        }
        window.end(this.#now());
      },
    };
  }
}

function contextOf(parent: Parent | SamplingDecision | undefined): Context {
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

class OtlpCallTrace implements CallTrace {
  readonly #now: () => number;
  constructor(
    readonly span: Span,
    now: () => number,
  ) {
    this.#now = now;
  }

  get traceId(): string {
    return this.span.spanContext().traceId;
  }

  ended(attributes: Attributes, hasFailed: boolean): void {
    this.span.setAttributes(attributes);
    if (hasFailed) this.span.setStatus({ code: SpanStatusCode.ERROR });
    this.span.end(this.#now());
  }
}

/**
 * Milliseconds that the system clock may deviate before the clock is set to it: more than the system clock's own
 * inaccuracy, less than matters in a trace.
 */
const TOLERANCE = 50;

/**
 * Unix time in milliseconds with fractions, since a decision takes less than one. Between adjustments it is monotonic,
 * so that child spans lie within their parents. It is adjusted when the system clock is set, or after the machine was
 * suspended.
 *
 * @param now monotonic time in milliseconds, with fractions
 * @param systemNow Unix time in whole milliseconds
 */
export function unixClock(now = () => performance.now(), systemNow = Date.now): () => number {
  let origin = systemNow() - now();
  return () => {
    const elapsed = now();
    const deviation = systemNow() - (origin + elapsed);
    if (Math.abs(deviation) > TOLERANCE) origin += deviation;
    return origin + elapsed;
  };
}
