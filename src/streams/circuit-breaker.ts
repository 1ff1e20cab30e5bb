import type { SchedulerLike, Subscription } from 'rxjs';
import { type Backoff, backoff } from './backoff';
import type { ServerOutcome } from '../counting/batch';

/** A time in which the server was not called, or only for probes; those that follow each other closely are one. */
export interface Fault {
  readonly milliseconds: number;
  /** The calls that were refused, and those of the windows that failed. */
  readonly calls: number;
  /** Whether the server has answered in the end; false: it is no longer used. */
  readonly isUp: boolean;
}

/** Is notified of what a breaker does. */
export interface BreakerObserver {
  changed(isOpen: boolean): void;
  faultBegan?(): void;
  faultEnded?(fault: Fault): void;
}

export interface BreakerOptions {
  /** So many bad outcomes in a row open the breaker. */
  readonly failures: number;
  readonly scheduler: SchedulerLike;
  readonly observer: BreakerObserver;
  /** Milliseconds from opening to a probe, by how often it has opened in the fault; undefined: 50 to 500, growing. */
  readonly waits?: Backoff;
  /** Sends a probe, which ends with an outcome. Undefined: what is sent next is the probe. */
  readonly probe?: () => void;
}

/** Milliseconds without a fault after which one has ended, and the waits begin with the shortest again. */
const QUIET = 5_000;
const WAITS = backoff({ initial: 100, max: 500, jitter: (wait) => [wait / 2, wait] });

/**
 * Finds out by outcomes whether a server answers. It opens after `failures` bad outcomes in a row, or when more than
 * half of at least ten (and of twice `failures`) in the last second were bad. Then nothing is sent until a wait is
 * over, and a probe shows whether it closes or opens again.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  /** `idle`: the next window is the probe. */
  #state: 'closed' | 'open' | 'idle' | 'probing' = 'closed';
  /** Bad outcomes in a row. */
  #row = 0;
  #recent = new RecentOutcomes();
  /** When the fault began, when the breaker last closed in it, and how often it has opened. */
  #fault: { readonly began: number; closed: number; openings: number } | undefined;
  /** The calls that were refused or failed in the fault, or in the bad windows that may become one. */
  #affected = 0;
  #timer: Subscription | undefined;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  /** Whether calls are refused. */
  get isOpen(): boolean {
    return this.#state === 'open' || this.#state === 'probing';
  }

  /** A call was refused. */
  refused(): void {
    this.#affected += 1;
  }

  /** To be called when a window is sent. Returns whether it is the probe. */
  beginsProbe(): boolean {
    if (this.#state !== 'idle') return false;
    this.#state = 'probing';
    return true;
  }

  /**
   * Something that was sent has ended.
   *
   * @param size its calls
   */
  ended(outcome: ServerOutcome, size = 1): void {
    if (outcome === 'bad') this.#affected += size;
    if (this.#state === 'closed') this.#judge(outcome);
    else if (this.#state === 'probing') this.#probed(outcome);
  }

  /** The server is no longer used. */
  end(): void {
    this.#timer?.unsubscribe();
    if (this.#state !== 'closed') this.#options.observer.changed(false);
    this.#endFault();
  }

  #judge(outcome: ServerOutcome): void {
    if (outcome === 'none') return;
    const { failures, scheduler } = this.#options;
    const recent = this.#recent;
    recent.add(outcome === 'bad', scheduler.now());
    if (outcome === 'ok') {
      this.#row = 0;
      if (this.#fault === undefined) this.#affected = 0;
      return;
    }
    this.#row += 1;
    if (this.#row >= failures || recent.areMostlyBad(Math.max(10, 2 * failures))) this.#open();
  }

  #probed(outcome: ServerOutcome): void {
    if (outcome === 'ok') this.#close();
    else if (outcome === 'bad') this.#open();
    else this.#state = 'idle';
  }

  #open(): void {
    const { observer, scheduler, waits = WAITS } = this.#options;
    this.#state = 'open';
    observer.changed(true);
    if (this.#fault === undefined) {
      this.#fault = { began: scheduler.now(), closed: 0, openings: 0 };
      observer.faultBegan?.();
    }
    this.#fault.openings += 1;
    this.#timer?.unsubscribe();
    this.#timer = scheduler.schedule(() => this.#probe(), waits(this.#fault.openings));
  }

  #probe(): void {
    const { probe } = this.#options;
    this.#state = probe === undefined ? 'idle' : 'probing';
    probe?.();
  }

  #close(): void {
    const { observer, scheduler } = this.#options;
    this.#state = 'closed';
    this.#row = 0;
    this.#recent = new RecentOutcomes();
    observer.changed(false);
    if (this.#fault !== undefined) this.#fault.closed = scheduler.now();
    this.#timer = scheduler.schedule(() => this.#endFault(), QUIET);
  }

  #endFault(): void {
    if (this.#fault === undefined) return;
    const { observer, scheduler } = this.#options;
    const { began, closed } = this.#fault;
    const isUp = this.#state === 'closed';
    const end = isUp ? closed : scheduler.now();
    observer.faultEnded?.({ milliseconds: end - began, calls: this.#affected, isUp });
    this.#fault = undefined;
    this.#affected = 0;
  }
}

/** The outcomes of the last second, in tenths of it. */
class RecentOutcomes {
  readonly #tenths = Array.from({ length: 10 }, () => ({ number: -Infinity, size: 0, bad: 0 }));
  #newest = 0;

  add(isBad: boolean, now: number): void {
    const newest = (this.#newest = Math.floor(now / 100));
    const tenth = this.#tenths[newest % 10]!;
    if (tenth.number !== newest) Object.assign(tenth, { number: newest, size: 0, bad: 0 });
    tenth.size += 1;
    tenth.bad += Number(isBad);
  }

  /** @param least how many there have to be */
  areMostlyBad(least: number): boolean {
    let [size, bad] = [0, 0];
    for (const tenth of this.#tenths) {
      if (tenth.number <= this.#newest - 10) continue;
      size += tenth.size;
      bad += tenth.bad;
    }
    return size >= least && bad > size / 2;
  }
}
