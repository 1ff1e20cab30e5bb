import {
  EMPTY,
  type Observable,
  expand,
  fromEvent,
  interval,
  lastValueFrom,
  map,
  mergeMap,
  of,
  range,
  scan,
  takeUntil,
  takeWhile,
  tap,
} from 'rxjs';
import { RateLimitResponse_Code as Code, type RateLimitResponse } from '../../gen/envoy/service/ratelimit/v3/rls';
import { messageOf } from '../../text/thrown';
import { visibleLine } from '../../text/visible';
import type { Output } from '../program';

/** How many calls are in flight without a rate. */
const LANES = 10;
/** With a rate, calls that are due wait while so many are in flight. */
const MAX_IN_FLIGHT = 1_000;
/** Milliseconds between two looks at how many calls are due, and between two lines of progress. */
const PACE_INTERVAL = 5;
const PROGRESS_INTERVAL = 100;

export interface Repetition {
  readonly count: number;
  /** Calls per second; 0: as fast as they are answered. */
  readonly rate: number;
  /** Gets a line that is written over and over, if it is a terminal. */
  readonly progress: Output;
}

/** What came of repeated calls; the JSON that weir-client prints. */
export interface RepetitionSummary {
  readonly calls: number;
  readonly seconds: number;
  /** How many responses had each code. */
  readonly codes: Readonly<Record<string, number>>;
  /** How many calls had no response, by the reason. */
  readonly failures: Readonly<Record<string, number>>;
  /** Milliseconds from the call to the response, of those that had one; null without any. */
  readonly latency: { readonly p50: number; readonly p99: number; readonly max: number } | null;
}

/** Makes calls until all are answered, or the user interrupts the program. Never rejects. */
export async function repeat(
  send: () => Promise<RateLimitResponse>,
  { count, rate, progress }: Repetition,
): Promise<RepetitionSummary> {
  const [codes, failures]: Record<string, number>[] = [{}, {}];
  const latencies: number[] = [];
  const began = performance.now();
  let [begun, calls, shown] = [0, 0, began];
  async function call(): Promise<void> {
    begun += 1;
    const start = performance.now();
    try {
      const { overallCode } = await send();
      latencies.push(performance.now() - start);
      add(codes!, Code[overallCode] ?? `code ${overallCode}`);
    } catch (error) {
      add(failures!, messageOf(error));
    }
    calls += 1;
  }
  function show(): void {
    if (progress.isTTY !== true || performance.now() - shown < PROGRESS_INTERVAL) return;
    shown = performance.now();
    progress.write(`\r${calls} of ${count} calls${listed(codes!)}\u001b[K`);
  }
  /** One call after the other. */
  const lane$ = of(undefined).pipe(expand(() => (begun < count ? call() : EMPTY)));
  const calls$ =
    rate === 0
      ? range(LANES).pipe(mergeMap(() => lane$))
      : paced(count, rate, began).pipe(mergeMap(call, MAX_IN_FLIGHT));
  await lastValueFrom(calls$.pipe(tap(show), takeUntil(fromEvent(process, 'SIGINT'))), { defaultValue: undefined });
  if (progress.isTTY === true) progress.write('\r\u001b[K');
  const sorted = latencies.toSorted((one, other) => one - other);
  return {
    calls,
    seconds: rounded((performance.now() - began) / 1000),
    codes: codes!,
    failures: failures!,
    latency:
      sorted.length === 0
        ? null
        : { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: quantile(sorted, 1) },
  };
}

/** Emits each call when it is due. A stall is made up for at once. */
function paced(count: number, rate: number, began: number): Observable<unknown> {
  return interval(PACE_INTERVAL).pipe(
    map(() => Math.min(count, 1 + Math.floor(((performance.now() - began) / 1000) * rate))),
    scan(([, before], due) => [before, due] as const, [0, 0] as readonly [number, number]),
    takeWhile(([, due]) => due < count, true),
    mergeMap(([before, due]) => range(due - before)),
  );
}

/** A human-readable summary. */
export function formatRepetition({ calls, seconds, codes, failures, latency }: RepetitionSummary): string {
  const lines = [`${calls} calls in ${seconds} s${listed(codes)}`];
  if (latency !== null)
    lines.push(`  latency: half within ${latency.p50} ms, 99 % within ${latency.p99} ms, longest ${latency.max} ms`);
  for (const [reason, times] of Object.entries(failures)) lines.push(`  ${times} without response: ${reason}`);
  return lines.map(visibleLine).join('\n');
}

function listed(codes: Readonly<Record<string, number>>): string {
  const counts = Object.entries(codes).map(([code, times]) => `${times} ${code}`);
  return counts.length === 0 ? '' : `: ${counts.join(', ')}`;
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

function quantile(sorted: readonly number[], share: number): number {
  return rounded(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
