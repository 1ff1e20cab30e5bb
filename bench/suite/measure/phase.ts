import { until } from '../../../test/support/waiting/until';
import type { Interval, Latency } from '../load/interval';
import { CpuTimes } from '../processes/cpu-times';
import type { LoadGenerator } from '../processes/load-generator';
import type { Commands, RunningStore } from '../processes/stores';

/** What became of calls. `sent` + `inFlightBefore` is the sum of all others. */
export interface Calls {
  readonly sent: number;
  readonly inFlightBefore: number;
  /** Answered with the overall code that the load expects. */
  readonly expected: number;
  /** Answered with another overall code. */
  readonly unexpected: number;
  /** An error instead of an answer. */
  readonly failed: number;
  readonly inFlight: number;
}

/** The measurement of one load at one pace. */
export interface Phase {
  readonly seconds: number;
  readonly calls: Calls;
  /** Answers per second. */
  readonly perSecond: number;
  /**
   * CPU time per decision in µs, of all processes of the service and of the store; undefined for a process that is not
   * ours.
   */
  readonly cpu: { readonly service?: number | undefined; readonly store: number };
  /**
   * Per decision: writes of clients as the store reads them, and commands that it executed, which includes those that
   * scripts called.
   */
  readonly commands?: { readonly sent: number; readonly executed: number } | undefined;
  /** In ms, from the time at which a call was due. */
  readonly latency: Latency;
  /** In ms: how much later than due calls were written, which is part of their latency. */
  readonly lag: Latency;
  /** The share of the time in which the generator was busy. */
  readonly generatorBusy: number;
  /** Cores that programs outside of the benchmark used. */
  readonly otherCores: number;
}

/** From which share of time on the generator limits the pace: the service could answer more. */
export const GENERATOR_IS_BUSY = 0.95;

export interface Measured {
  readonly generator: LoadGenerator;
  /** The overall code of every answer. */
  readonly expected: number;
  /** Processes of the service; undefined when they are not known. */
  readonly servicePids?: readonly number[] | undefined;
  readonly store?: RunningStore | undefined;
}

/** Measures the load that the generator is sending, for this number of milliseconds. */
export async function measurePhase(measured: Measured, milliseconds: number): Promise<Phase> {
  const { generator } = measured;
  const before = await usageOf(measured);
  await generator.mark();
  await new Promise((resolve) => setTimeout(resolve, milliseconds));
  // A short measurement on a busy machine may be over before the first answer.
  await until('a call is answered', async () => (await generator.answered()) > 0);
  const interval = await generator.mark();
  const after = await usageOf(measured);
  return phaseOf(interval, measured.expected, before, after);
}

/** CPU times in µs. */
interface Usage {
  readonly service: number | undefined;
  readonly store: number;
  /** Of this process and its descendants: everything but other programs. */
  readonly own: number;
  readonly machine: number;
  readonly commands: Commands | undefined;
}

async function usageOf({ servicePids, store }: Measured): Promise<Usage> {
  const times = new CpuTimes();
  return {
    service: servicePids && times.of(servicePids),
    store: times.of(store?.pids ?? []),
    own: times.of([process.pid]),
    machine: times.machine,
    commands: await store?.commands(),
  };
}

function phaseOf(interval: Interval, expectedCode: number, before: Usage, after: Usage): Phase {
  const { seconds, sent, codes, failed, outstanding, outstandingBefore, latency, lag, busy } = interval;
  const answered = codes.reduce((sum, each) => sum + each, 0);
  const expected = codes[expectedCode] ?? 0;
  return {
    seconds,
    calls: {
      sent,
      inFlightBefore: outstandingBefore,
      expected,
      unexpected: answered - expected,
      failed,
      inFlight: outstanding,
    },
    perSecond: answered / seconds,
    cpu: {
      service:
        after.service === undefined || before.service === undefined
          ? undefined
          : (after.service - before.service) / answered,
      store: (after.store - before.store) / answered,
    },
    commands: before.commands && after.commands && commandsOf(before.commands, after.commands, answered),
    latency,
    lag,
    generatorBusy: busy,
    otherCores: Math.max(0, (after.machine - before.machine - (after.own - before.own)) / 1e6 / seconds),
  };
}

/** Commands that a script calls count as executed, although no client has sent them. */
function commandsOf(before: Commands, after: Commands, answered: number): Phase['commands'] {
  const [reads, executed] = [after.reads - before.reads, after.executed - before.executed];
  return { sent: (reads > 0 ? reads : executed) / answered, executed: executed / answered };
}
