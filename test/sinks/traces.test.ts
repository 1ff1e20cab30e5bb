import { type Span, type SpanOptions, type Tracer as SpanFactory, trace } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { retryingExporter } from '../../src/sinks/otlp/exporters';
import { OtlpTracer, unixClock } from '../../src/sinks/traces/otlp-tracer';
import { type Parent, readParent } from '../../src/sinks/traces/parent';
import type { TraceCarrier } from '../../src/streams/ports/tracer';

/** The start times of the spans of a tracer with this sampling rate, at time 1,000. */
function begun(samplingRate: number, carrier: TraceCarrier): readonly unknown[] {
  const times: unknown[] = [];
  function startSpan(_name: string, options?: SpanOptions): Span {
    times.push(options?.startTime);
    return trace.wrapSpanContext({ traceId: '', spanId: '', traceFlags: 0 });
  }
  const factory = { startSpan } as Partial<SpanFactory> as SpanFactory;
  new OtlpTracer(factory, samplingRate, () => 1_000).begin('service/Method', {}, carrier);
  return times;
}

describe('the span of a call', () => {
  it('begins now, or when the call began to wait', () => {
    expect([begun(1, {}), begun(1, { ageMs: 250 })]).toEqual([[1_000], [750]]);
  });

  it.each([
    [0, 0, false],
    [0.5, 0.4, true],
    [0.5, 0.5, false],
    [1, 0.999, true],
  ])('exists, at a sampling rate of %d and chance %d: %j, unless the caller has decided', (rate, chance, isSampled) => {
    jest.spyOn(Math, 'random').mockReturnValue(chance);
    function isBegun(b3?: string) {
      return begun(rate, { metadata: (name) => (name === 'b3' ? b3 : undefined) }).length === 1;
    }
    expect([isBegun(), isBegun(`${T}-${S}`), isBegun('0'), isBegun('1')]).toEqual([isSampled, isSampled, false, true]);
    jest.restoreAllMocks();
  });
});

const T = '0af7651916cd43dd8448eb211c80319c';
const S = 'b7ad6b7169203331';

function parent(isSampled: boolean | undefined, more: Partial<Parent> = {}): Parent {
  return { traceId: T, spanId: S, isSampled, state: undefined, ...more };
}

type Fields = Readonly<Record<string, string | undefined>>;

function parentIn(fields: Fields) {
  return readParent({ metadata: (name) => fields[name] });
}

describe('the parent of a call', () => {
  it.each([
    ['sampled', `00-${T}-${S}-01`, parent(true)],
    ['not sampled', `00-${T}-${S}-00`, parent(false)],
    ['with other flags', `00-${T}-${S}-ff`, parent(true)],
    ['of a later version', `cc-${T}-${S}-01-what-the-future`, parent(true)],
    ['of version ff', `ff-${T}-${S}-01`, undefined],
    ['with more than version 00 has', `00-${T}-${S}-01-more`, undefined],
    ['in upper case', `00-${T.toUpperCase()}-${S}-01`, undefined],
    ['with a trace of zeros', `00-${'0'.repeat(32)}-${S}-01`, undefined],
    ['with a span of zeros', `00-${T}-${'0'.repeat(16)}-01`, undefined],
  ])('is read from a W3C header %s', (_, traceparent, found) => {
    const state = 'a=1,b=2';
    const expected = found?.isSampled === true ? { ...found, state } : found;
    expect(parentIn({ traceparent, tracestate: state })).toEqual(expected);
  });

  it.each([
    ['sampled', `${T}-${S}-1`, parent(true)],
    ['with a parent span', `${T}-${S}-0-05e3ac9a4f6e3b90`, parent(false)],
    ['debug', `${T}-${S}-d`, parent(true)],
    ['without a sampling decision', `${T}-${S}`, parent(undefined)],
    ['with only a sampling decision', '0', { isSampled: false }],
    ['that is invalid', 'perhaps', undefined],
    ['of 64 bits', `${S}-${S}-1`, parent(true, { traceId: '0'.repeat(16) + S })],
  ])('is read from a single B3 header %s', (_, b3, found) => {
    expect(parentIn({ b3 })).toEqual(found);
  });

  it.each([
    ['in any case', [T.toUpperCase(), S, '1'], parent(true)],
    ['not sampled', [T, S, '0'], parent(false)],
    ['as a word', [T, S, 'False'], parent(false)],
    ['debug', [T, S, undefined, '1'], parent(true)],
    ['without a sampling decision', [T, S], parent(undefined)],
    ['with only a sampling decision', [undefined, undefined, '0'], { isSampled: false }],
    ['with a broken id', ['x', S], undefined],
  ])('is read from multiple B3 headers %s', (_, texts, found) => {
    const names = ['x-b3-traceid', 'x-b3-spanid', 'x-b3-sampled', 'x-b3-flags'];
    expect(parentIn(Object.fromEntries(names.map((name, index) => [name, texts[index]])))).toEqual(found);
  });

  it('is that of the W3C header unless it is invalid, and none without headers', () => {
    const b3 = `${T}-${S}-1`;
    expect(parentIn({ traceparent: `00-${T}-${S}-00`, b3 })).toEqual(parent(false));
    expect(parentIn({ traceparent: 'x', b3 })).toEqual(parent(true));
    expect([parentIn({}), readParent({})]).toEqual([undefined, undefined]);
  });
});

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

const SUCCESS = { code: 0 } as unknown as Result;
function failed(code: number) {
  return { code: 1, error: Object.assign(new Error(`${code}`), { code }) } as unknown as Result;
}

/** An export through an exporter that reports these results in order, and then repeats the last one. */
function exported(timeout: number, ...results: readonly Result[]) {
  const made = { attempts: 0, isShut: false, reports: [] as Result[], shutdown: () => retried.shutdown() };
  const retried = retryingExporter(
    {
      export: (_spans, report) => {
        made.attempts += 1;
        report(results[Math.min(made.attempts, results.length) - 1] as Result);
      },
      shutdown: async () => void (made.isShut = true),
    },
    timeout,
  );
  retried.export([], (result) => made.reports.push(result));
  return made;
}

describe('an export over gRPC', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('is retried after some statuses until it succeeds, and reported immediately after the others', () => {
    const isRetried = Array.from({ length: 16 }, (_, index) => {
      const made = exported(10_000, failed(index + 1), failed(index + 1), SUCCESS);
      const isReported = made.reports.length > 0;
      jest.advanceTimersByTime(10_000);
      expect(made).toMatchObject(isReported ? { attempts: 1 } : { attempts: 3, reports: [SUCCESS] });
      return !isReported;
    });
    expect(isRetried.flatMap((is, index) => (is ? index + 1 : []))).toEqual([1, 10, 11, 14, 15]);
  });

  it.each([
    [0, 800, 1_200],
    [1, 1_200, 1_800],
  ])('is retried after about one second, and then after longer pauses (%p)', (chance, first, second) => {
    jest.spyOn(Math, 'random').mockReturnValue(chance);
    const made = exported(60_000, failed(14));
    for (const [index, pause] of [first, second].entries()) {
      jest.advanceTimersByTime(pause - 1);
      expect(made.attempts).toBe(index + 1);
      jest.advanceTimersByTime(1);
      expect(made.attempts).toBe(index + 2);
    }
  });

  it('is reported when the timeout has passed, is not retried when it is too short, and ends with the exporter', async () => {
    const made = exported(5_000, failed(14));
    jest.advanceTimersByTime(5_000);
    expect(made.reports).toEqual([failed(14)]);
    expect(made.attempts).toBeGreaterThan(1);
    expect(exported(500, failed(14)).reports).toEqual([failed(14)]);
    expect(jest.getTimerCount()).toBe(0);
    const abandoned = exported(10_000, failed(14));
    await abandoned.shutdown();
    expect(abandoned).toMatchObject({ attempts: 1, isShut: true, reports: [failed(14)] });
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe('the clock of spans', () => {
  it.each([0, -3_600_000, 3_600_000])(
    'has fractions of a millisecond, ignores small adjustments of the system clock, and follows when it is set (%i ms)',
    (shift) => {
      let steady = 5.5;
      let system = 1_000_000_000_000;
      const now = unixClock(
        () => steady,
        () => Math.floor(system),
      );
      function pass(milliseconds: number, adjustment = 0) {
        steady += milliseconds;
        system += milliseconds + adjustment;
        return now() - 1_000_000_000_000;
      }
      expect([pass(0.25), pass(0.75, 20), pass(1, -40)]).toEqual([0.25, 1, 2]);
      system += 20;
      expect([pass(1, shift), pass(1.5)]).toEqual([3 + shift, 4.5 + shift]);
    },
  );
});
