import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { retryingExporter } from '../../../src/sinks/traces/retrying-exporter';

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

const TAKEN = { code: 0 } as unknown as Result;
function failed(code: number) {
  return { code: 1, error: Object.assign(new Error(`${code}`), { code }) } as unknown as Result;
}
const UNAVAILABLE = failed(14);

/** An exporter with these results, one after the other, the last one for ever. */
function exporterWith(...results: readonly Result[]) {
  const exporter = {
    tries: 0,
    isShut: false,
    export: (_spans: readonly unknown[], report: (result: Result) => void): void => {
      exporter.tries += 1;
      report(results[Math.min(exporter.tries, results.length) - 1] as Result);
    },
    shutdown: async (): Promise<void> => {
      exporter.isShut = true;
    },
  };
  return exporter;
}

function exported(exporter: SpanExporter): readonly Result[] {
  const reports: Result[] = [];
  exporter.export([], (result) => reports.push(result));
  return reports;
}

describe('an export that fails', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it.each([1, 10, 11, 14, 15])('is tried again after status %i, until it is taken', (code) => {
    const exporter = exporterWith(failed(code), failed(code), TAKEN);
    const reports = exported(retryingExporter(exporter, 10_000));
    expect([exporter.tries, reports]).toEqual([1, []]);
    jest.advanceTimersByTime(10_000);
    expect([exporter.tries, reports]).toEqual([3, [TAKEN]]);
  });

  it.each([2, 3, 4, 7, 8, 12, 13, 16])('is reported at once after status %i', (code) => {
    const exporter = exporterWith(failed(code));
    expect(exported(retryingExporter(exporter, 10_000))).toEqual([failed(code)]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    [0, 800, 1_200],
    [0.5, 1_000, 1_500],
    [1, 1_200, 1_800],
  ])(
    'waits about one second before the second try, and longer before each further one (%p)',
    (chance, first, second) => {
      jest.spyOn(Math, 'random').mockReturnValue(chance);
      const exporter = exporterWith(UNAVAILABLE);
      exported(retryingExporter(exporter, 60_000));
      for (const [pause, tries] of [
        [first, 1],
        [second, 2],
      ] as const) {
        jest.advanceTimersByTime(pause - 1);
        expect(exporter.tries).toBe(tries);
        jest.advanceTimersByTime(1);
        expect(exporter.tries).toBe(tries + 1);
      }
    },
  );

  it('is reported when its time is over', () => {
    const exporter = exporterWith(UNAVAILABLE);
    const reports = exported(retryingExporter(exporter, 5_000));
    jest.advanceTimersByTime(5_000);
    expect([exporter.tries, reports]).toEqual([expect.any(Number), [UNAVAILABLE]]);
    expect(exporter.tries).toBeGreaterThan(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is not tried at all again where there is no time for it', () => {
    expect(exported(retryingExporter(exporterWith(UNAVAILABLE), 500))).toEqual([UNAVAILABLE]);
  });

  it('is given up when the exporter is shut down', async () => {
    const exporter = exporterWith(UNAVAILABLE);
    const retried = retryingExporter(exporter, 10_000);
    const reports = exported(retried);
    await retried.shutdown();
    expect([exporter.tries, exporter.isShut, reports]).toEqual([1, true, [UNAVAILABLE]]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
