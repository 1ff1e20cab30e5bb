/**
 * How a server of a store is. `unknown`: nothing was heard of it lately; `answering`; `slow`: it answers, but late;
 * `silent`: it does not answer; `failing`: its requests fail; `away`: there is no connection to it.
 */
export type Condition = (typeof CONDITIONS)[number];

/** All conditions, the worst at the end. */
export const CONDITIONS = ['unknown', 'answering', 'slow', 'failing', 'silent', 'away'] as const;

/** The conditions of a fault. */
export type Trouble = Extract<Condition, 'silent' | 'failing' | 'away'>;

/** From when on a server is in a condition; `away` begins with the loss of its last connection. */
export const THRESHOLDS = {
  /**
   * Milliseconds without a request or a check after which nothing is known of a server whose connections are not
   * watched.
   */
  unknown: 10_000,
  /** Milliseconds of a request on average, in the last ten seconds: a proxy waits 20 ms for a decision by default. */
  slow: 10,
  /**
   * Milliseconds that a request is unanswered while nothing else of the server is answered; KVSTORE_TIMEOUT if that is
   * shorter.
   */
  silent: 1_000,
  /**
   * So many requests in a row: STORE_BREAKER_FAILURES, or so many if that is 0. Or more than half of those of the last
   * second, of which there are twice as many, and at least `ofAtLeast`.
   */
  failing: { inARow: 5, ofAtLeast: 10 },
} as const;

/** What is known of a server; dates are Unix milliseconds. */
export interface ServerReport extends ServerName {
  readonly condition: Condition;
  /** When the condition began. */
  readonly since: number;
  /** When the fault began, which may have had several conditions; undefined: there is none. */
  readonly troubleSince?: number | undefined;
  /** Whether calls are refused, and only probes are sent. */
  readonly isHeldBack: boolean;
  /** The last error of the fault. */
  readonly reason?: string | undefined;
  readonly lastSuccess?: number | undefined;
  /** The last fault that has ended. */
  readonly lastFault?: Fault | undefined;
}

/** The name of a server in log lines and tags. */
export interface ServerName {
  readonly server: string;
  /** Which store it is of, if there may be several. */
  readonly store?: string | undefined;
}

/** A time in which a server was in trouble; those that follow each other within five seconds are one. */
export interface Fault {
  /** Unix milliseconds. */
  readonly began: number;
  readonly milliseconds: number;
  /** The calls that were refused, and those of the windows that failed. */
  readonly calls: number;
  /** Whether the server has answered in the end; false: it is no longer used. */
  readonly isUp: boolean;
}

/** What was measured of a server in a time; rates are per second. */
export interface ServerRates {
  readonly requests: number;
  readonly failures: number;
  /** Milliseconds of a request that has not failed, on average; null: there was none. */
  readonly latency: number | null;
}

/** The requests of the last ten seconds, in tenths of a second. */
export class RecentRequests {
  readonly #now: () => number;
  readonly #tenths = Array.from({ length: 100 }, () => ({ number: -Infinity, size: 0, bad: 0, time: 0 }));
  /** The number of the first tenth that {@link areMostlyBad} counts. */
  #first = -Infinity;

  constructor(now: () => number) {
    this.#now = now;
  }

  add(isBad: boolean, milliseconds: number): void {
    const number = this.#newest;
    const tenth = this.#tenths[number % 100]!;
    if (tenth.number !== number) Object.assign(tenth, { number, size: 0, bad: 0, time: 0 });
    tenth.size += 1;
    if (isBad) tenth.bad += 1;
    else tenth.time += milliseconds;
  }

  forget(): void {
    this.#first = this.#newest + 1;
  }

  /** Whether more than half of the last second failed. @param least how many there have to be */
  areMostlyBad(least: number): boolean {
    const { size, bad } = this.#sum(Math.max(this.#newest - 9, this.#first));
    return size >= least && bad > size / 2;
  }

  rates(seconds: number): ServerRates {
    const { size, bad, time } = this.#sum(this.#newest - seconds * 10 + 1);
    const good = size - bad;
    return { requests: size / seconds, failures: bad / seconds, latency: good === 0 ? null : time / good };
  }

  get #newest(): number {
    return Math.floor(this.#now() / 100);
  }

  #sum(from: number): { readonly size: number; readonly bad: number; readonly time: number } {
    let [size, bad, time] = [0, 0, 0];
    for (const tenth of this.#tenths) {
      if (tenth.number < from) continue;
      size += tenth.size;
      bad += tenth.bad;
      time += tenth.time;
    }
    return { size, bad, time };
  }
}
