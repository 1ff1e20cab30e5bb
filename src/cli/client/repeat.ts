import { once, setMaxListeners } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { RateLimitResponse_Code as Code, type RateLimitResponse } from '../../gen/envoy/service/ratelimit/v3/rls';
import { messageOf } from '../../text/thrown';
import { visibleLines } from '../../text/visible';
import type { Output } from '../program';
import { Progress } from '../progress';

/** How many calls are in flight at most, without a rate and with one. */
const LANES = 10;
const LANES_WITH_RATE = 1_000;

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
  const shown = new Progress(progress);
  let [begun, calls] = [0, 0];
  const end = new AbortController();
  const { signal } = end;
  setMaxListeners(LANES_WITH_RATE + 1, signal);
  async function call(): Promise<void> {
    const start = performance.now();
    try {
      const { overallCode } = await send();
      latencies.push(performance.now() - start);
      add(codes!, Code[overallCode] ?? `code ${overallCode}`);
    } catch (error) {
      add(failures!, messageOf(error));
    }
    calls += 1;
    shown.update(() => `${calls} of ${count} calls${listed(codes!)}`);
  }
  /** One call after the other. With a rate, each waits until it is due; a stall is made up for at once. */
  async function lane(): Promise<void> {
    while (begun < count && !signal.aborted) {
      const due = rate === 0 ? 0 : began + (begun * 1000) / rate;
      begun += 1;
      if (due > performance.now()) await setTimeout(due - performance.now(), undefined, { signal });
      await call();
    }
  }
  const lanes = Array.from({ length: Math.min(count, rate === 0 ? LANES : LANES_WITH_RATE) }, lane);
  await Promise.race([Promise.all(lanes), once(process, 'SIGINT', { signal })]);
  end.abort();
  shown.end();
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

/** A human-readable summary. */
export function formatRepetition({ calls, seconds, codes, failures, latency }: RepetitionSummary): string {
  const lines = [`${calls} calls in ${seconds} s${listed(codes)}`];
  if (latency !== null)
    lines.push(`  latency: half within ${latency.p50} ms, 99 % within ${latency.p99} ms, longest ${latency.max} ms`);
  for (const [reason, times] of Object.entries(failures)) lines.push(`  ${times} without response: ${reason}`);
  return visibleLines(lines);
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
