import { type Span, type SpanOptions, type Tracer as SpanFactory, trace } from '@opentelemetry/api';
import { OtlpTracer } from '../../../src/sinks/traces/otlp-tracer';

const NOW = 1_700_000_000_000;

describe('the span of a call', () => {
  it.each([
    ['begins now', {}, NOW],
    ['includes the time for which the call has waited', { ageMs: 250 }, NOW - 250],
  ])('%s', (_, carrier, startTime) => {
    const begun: unknown[] = [];
    function startSpan(_name: string, options?: SpanOptions): Span {
      begun.push(options?.startTime);
      return trace.wrapSpanContext({ traceId: '', spanId: '', traceFlags: 0 });
    }
    const tracer = new OtlpTracer({ startSpan } as Partial<SpanFactory> as SpanFactory, 1, () => NOW);
    tracer.begin('service/Method', {}, carrier);
    expect(begun).toEqual([startTime]);
  });
});
