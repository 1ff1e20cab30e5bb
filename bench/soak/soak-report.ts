import type { Latency } from '../suite/load/interval';
import type { Machine } from '../suite/processes/machine';
import type { SoakSetup } from './setup';
import type { Trend } from './trend';

/** How far heap and buffers after a collection, and resident memory, may grow after the first third, as a share of the median. */
export const FLAT = { heap: 0.05, resident: 0.1 } as const;

export interface SoakOptions {
  readonly seconds: number;
  /** Different values of each generation of calls. */
  readonly values: number;
  /** Seconds between two disturbances of each kind, and between two samples of the memory. */
  readonly every: {
    readonly reload: number;
    /** New values for all calls. */
    readonly turnover: number;
    /** One connection ends and another one is opened. */
    readonly connection: number;
    /** The store is killed and started again, or a worker is killed, in turn. */
    readonly interruption: number;
    /** The load pauses, the memory is measured, and the pace is set to half of the saturation of that time. */
    readonly sample: number;
  };
  /** Milliseconds for which the store is away. */
  readonly away: number;
  /** Milliseconds of the closed loop before everything else, in which the service compiles its code. */
  readonly warmUp: number;
  /** Milliseconds of the closed loop that finds the saturation. */
  readonly saturate: number;
}

/**
 * The memory of all processes of the service at a time in seconds, in bytes, while no call is in flight: heap and buffers after a
 * forced collection, and resident memory.
 */
export interface SoakSample {
  readonly at: number;
  readonly heap: number;
  readonly resident: number;
}

export interface SoakReport {
  readonly date: string;
  readonly machine: Machine;
  readonly setup: SoakSetup;
  readonly seconds: number;
  /** Calls per second of the open loops. */
  readonly paces: readonly number[];
  readonly calls: {
    readonly sent: number;
    readonly answered: number;
    readonly failed: number;
    readonly unanswered: number;
  };
  /** Different keys of each of the two rules. */
  readonly values: number;
  /** Answers without the expected parts. */
  readonly malformed: number;
  /** Values whose answers contradict each other or the count in the store. */
  readonly wrongCounts: number;
  readonly firstWrong: string | undefined;
  readonly failedInOutages: number;
  readonly failedOtherwise: number;
  readonly storeRestarts: number;
  readonly workersKilled: number;
  /**
   * When the store was away, until the service had reached it again, and when a worker was missing; seconds from the beginning.
   */
  readonly outages: readonly (readonly [from: number, to: number])[];
  readonly reloads: number;
  /** The limits in the answers: those of both versions of the rules. */
  readonly limitsSeen: readonly number[];
  readonly generations: number;
  /** Connections that ended after their calls, and in whose place others were opened. */
  readonly connections: number;
  /** At the end, according to the service. */
  readonly openCalls: number;
  readonly latency: Latency;
  readonly samples: readonly SoakSample[];
  readonly heap: Trend;
  readonly resident: Trend;
}
