import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { retryingExporter } from '../../../src/sinks/traces/retrying-exporter';

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0];

const SUCCESS = { code: 0 } as unknown as Result;
function failed(code: number) {
  return { code: 1, error: Object.assign(new Error(`${code}`), { code }) } as unknown as Result;
}
const UNAVAILABLE = failed(14);

/** An exporter that reports these results in order, and then repeats the last one. */
function exporterWith(...results: readonly Result[]) {
  const exporter = {
    attempts: 0,
    isShut: false,
    export: (_spans: readonly unknown[], report: (result: Result) => void): void => {
      exporter.attempts += 1;
      report(results[Math.min(exporter.attempts, results.length) - 1] as Result);
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

describe('an export through retryingExporter', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it.each([1, 10, 11, 14, 15])('is retried after status %i, until it succeeds', (code) => {
    const exporter = exporterWith(failed(code), failed(code), SUCCESS);
    const reports = exported(retryingExporter(exporter, 10_000));
    expect([exporter.attempts, reports]).toEqual([1, []]);
    jest.advanceTimersByTime(10_000);
    expect([exporter.attempts, reports]).toEqual([3, [SUCCESS]]);
  });

  it.each([2, 3, 4, 7, 8, 12, 13, 16])('is reported immediately after status %i', (code) => {
    const exporter = exporterWith(failed(code));
    expect(exported(retryingExporter(exporter, 10_000))).toEqual([failed(code)]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    [0, 800, 1_200],
    [0.5, 1_000, 1_500],
    [1, 1_200, 1_800],
  ])('is retried after about one second, and then after longer pauses (%p)', (chance, first, second) => {
    jest.spyOn(Math, 'random').mockReturnValue(chance);
    const exporter = exporterWith(UNAVAILABLE);
    exported(retryingExporter(exporter, 60_000));
    for (const [pause, attempts] of [
      [first, 1],
      [second, 2],
    ] as const) {
      jest.advanceTimersByTime(pause - 1);
      expect(exporter.attempts).toBe(attempts);
      jest.advanceTimersByTime(1);
      expect(exporter.attempts).toBe(attempts + 1);
    }
  });

  it('is reported when the timeout has passed', () => {
    const exporter = exporterWith(UNAVAILABLE);
    const reports = exported(retryingExporter(exporter, 5_000));
    jest.advanceTimersByTime(5_000);
    expect([exporter.attempts, reports]).toEqual([expect.any(Number), [UNAVAILABLE]]);
    expect(exporter.attempts).toBeGreaterThan(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is not retried when the timeout is too short', () => {
    expect(exported(retryingExporter(exporterWith(UNAVAILABLE), 500))).toEqual([UNAVAILABLE]);
  });

  it('is abandoned when the exporter is shut down', async () => {
    const exporter = exporterWith(UNAVAILABLE);
    const retried = retryingExporter(exporter, 10_000);
    const reports = exported(retried);
    await retried.shutdown();
    expect([exporter.attempts, exporter.isShut, reports]).toEqual([1, true, [UNAVAILABLE]]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
