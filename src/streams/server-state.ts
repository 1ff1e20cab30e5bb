import { BehaviorSubject, type Observable, type Subscription } from 'rxjs';
import type { ServerOutcome } from '../counting/batch';
import { DecisionError } from '../counting/decision-error';
import { backoff } from './backoff';
import {
  type Condition,
  type Fault,
  RecentRequests,
  type ServerName,
  type ServerRates,
  type ServerReport,
  THRESHOLDS,
  type Trouble,
} from './server-report';
import { type Timing, Trips, afterTime, elapsedBy } from './deadline';

/** Is notified of what becomes of a server. */
export interface ServerObserver {
  /** A request has shown whether the server works. */
  readonly requested?: ((milliseconds: number, outcome: ServerOutcome) => void) | undefined;
  /** A request has failed, but there is no fault. */
  failed?(reason: string): void;
  faultBegan?(report: ServerReport): void;
  faultEnded?(fault: Fault): void;
}

/** How a request has ended. */
export interface Ended {
  /** How many calls the request has. */
  readonly size: number;
  /** How long a request has taken that has not failed. */
  readonly milliseconds: number;
  /** Whether it was sent before the last fault began: it has no say in what follows. */
  readonly isOld?: boolean;
  /** Why it has failed. */
  readonly reason?: string | undefined;
  /** Whether the store has logged that. */
  readonly isLogged?: boolean | undefined;
  /** What a failure shows; undefined: the server has not answered. */
  readonly trouble?: Trouble | undefined;
}

export interface ServerStateOptions {
  readonly name: ServerName;
  readonly scheduler: Timing;
  /**
   * STORE_BREAKER_FAILURES: so many failed requests in a row are a fault; 0: faults are told, but no calls are held
   * back.
   */
  readonly failures: number;
  /** KVSTORE_TIMEOUT: milliseconds after which the connection of a request is cut; 0 or undefined: no limit. */
  readonly timeout?: number | undefined;
  /** Milliseconds that a request may be unanswered; undefined: {@link THRESHOLDS}. */
  readonly silence?: number | undefined;
  /** STORE_DECISION_TIMEOUT: most milliseconds for the answer to a probe, if that is less than a second. */
  readonly limit?: number | undefined;
  /** Sends a probe, to be answered by {@link ServerState.checked}. Undefined: what is sent next is the probe. */
  readonly probe?: (() => void) | undefined;
  /** Milliseconds without an answer after which a probe is sent, although there is no fault; undefined: none is. */
  readonly checkEvery?: number | undefined;
  readonly observer?: ServerObserver | undefined;
}

/** The error of calls that are held back. */
export const NOT_SENT = new DecisionError(
  'store_failed',
  'the counter store does not answer; calls fail immediately until it does',
  { isUncounted: true },
);

/** Milliseconds without a fault after which one has ended, and the waits begin with the shortest again. */
export const QUIET = 5_000;
/** Most milliseconds that a probe may take. */
const PROBE_LIMIT = 1_000;
/** Milliseconds that a server whose requests have failed is seen as failing after a probe, if no request shows more. */
const HALF_OPEN = 1_000;

/** From a fault to a probe; further ones of the same fault wait longer. */
const WAITS = backoff({ initial: 100, max: 500, jitter: (wait) => [wait / 2, wait] });
/** From a fault to a probe that a timer sends, whether or not there are calls. */
const TIMED_WAITS = backoff({ initial: 100, max: 1_000, jitter: (wait) => [wait / 2, wait] });

/**
 * What is known of one server of a store: one object for its lane, its connections and all who show it. It is fed by
 * the trips to the server and by its pool; when it is in trouble, calls are held back until a probe shows that it
 * answers.
 */
export class ServerState {
  readonly name: ServerName;
  /** What is in flight to the server. */
  readonly trips: Trips;
  /** What is known: the present report, then one for each change. Completes when the server is no longer used. */
  readonly reports$: Observable<ServerReport>;
  /**
   * Adds what could not be sent before, when the server answers again, and calls back; until then calls are still held
   * back.
   */
  beforeResuming: ((added: (isAdded: boolean) => void) => void) | undefined;
  readonly #options: ServerStateOptions;
  readonly #now: () => number;
  readonly #reports$: BehaviorSubject<ServerReport>;
  /**
   * `idle`: what is sent next is the probe. `resuming`: it has answered, and what could not be sent before is added.
   */
  #phase: 'closed' | 'open' | 'idle' | 'probing' | 'resuming' = 'closed';
  #trouble: Trouble | undefined;
  #reason: string | undefined;
  /** Failed requests in a row. */
  #row = 0;
  readonly #recent: RecentRequests;
  #isSlow = false;
  #lastHeard = -Infinity;
  #lastProbe = -Infinity;
  #lastSuccess: number | undefined;
  /** Undefined: they are not watched. */
  #connections: number | undefined;
  /** The dates at which the fault began and was last over, how often it has begun anew, and whether it was told. */
  #fault: { readonly began: number; over: number; openings: number; isTold: boolean } | undefined;
  #lastFault: Fault | undefined;
  /** The calls that were refused or failed in the fault, or in the bad windows that may become one. */
  #affected = 0;
  /** Ends the phase. */
  #timer: Subscription | undefined;
  /** Looks for silence. */
  #watch: Subscription | undefined;
  #isDraining = false;
  #hasEnded = false;

  constructor(options: ServerStateOptions) {
    const { name, scheduler, timeout, checkEvery } = options;
    this.#options = options;
    this.name = name;
    this.trips = new Trips({ scheduler, timeout });
    this.#now = elapsedBy(scheduler);
    this.#recent = new RecentRequests(this.#now);
    this.#reports$ = new BehaviorSubject<ServerReport>(this.#reportOf('unknown', scheduler.now()));
    this.reports$ = this.#reports$.asObservable();
    if (checkEvery !== undefined) this.#lookAfter(checkEvery);
  }

  get report(): ServerReport {
    return this.#reports$.value;
  }

  /** Whether calls are refused. */
  get isHeldBack(): boolean {
    return this.#options.failures > 0 && this.#phase !== 'closed' && this.#phase !== 'idle';
  }

  /** Whether nothing is to be sent but what could not be sent before. */
  get isClosed(): boolean {
    return this.isHeldBack && this.#phase !== 'resuming';
  }

  /** @param seconds 1 to 10 */
  rates(seconds: number): ServerRates {
    return this.#recent.rates(seconds);
  }

  /** Something was sent. Returns whether it is the probe. */
  sent(): boolean {
    if (this.#hasEnded) return false;
    if (this.#watch === undefined && this.#trouble !== 'silent') this.#lookAfter(this.#silence);
    if (this.#phase !== 'idle' || this.#options.failures === 0) return false;
    this.#phase = 'probing';
    return true;
  }

  /** A request has ended. */
  ended(outcome: ServerOutcome, { size, milliseconds, isOld, ...failure }: Ended): void {
    if (this.#hasEnded) return;
    if (outcome !== 'none') {
      this.#options.observer?.requested?.(milliseconds, outcome);
      // A late reply to what was sent before the fault says nothing of the time that requests take now.
      if (isOld !== true) this.#recent.add(outcome === 'bad', milliseconds);
      if (outcome === 'ok') {
        this.#lastSuccess = this.#options.scheduler.now();
        this.heard();
      }
    }
    if (isOld === true) return;
    if (outcome === 'bad') this.#affected += size;
    if (this.#phase === 'closed') this.#judge(outcome, failure);
    else if (this.#phase === 'probing' && this.#options.probe === undefined) this.#judgeProbe(outcome, failure);
    else if (this.#options.failures === 0 && outcome === 'ok') this.#resume();
    const { reason, isLogged = false } = failure;
    if (outcome === 'bad' && reason !== undefined && !isLogged && this.#trouble === undefined) {
      this.#options.observer?.failed?.(reason);
    }
  }

  /** A request was answered, but policies had answered its calls before. */
  tookTime(milliseconds: number): void {
    if (this.#hasEnded) return;
    this.#options.observer?.requested?.(milliseconds, 'ok');
    this.#recent.add(false, milliseconds);
  }

  /** The process ends: what is in flight, or begins from now on, ends in time for a drain of so many milliseconds. */
  drain(milliseconds: number): void {
    this.#isDraining = true;
    this.trips.endWithin(milliseconds);
  }

  /** Calls were refused. */
  refused(calls = 1): void {
    this.#affected += calls;
    this.#tellFault();
  }

  /** The server has answered something, at whatever time. */
  heard(): void {
    if (this.#hasEnded) return;
    const before = this.#lastHeard;
    this.#lastHeard = this.#now();
    // A late reply is no proof, but a reason to ask at once, and once.
    const isAsked = this.#phase === 'probing' && before >= this.#lastProbe;
    const isWaiting = this.#phase === 'open' || this.#phase === 'probing';
    if (this.#trouble === 'silent' && isWaiting && !isAsked && this.#options.probe !== undefined) this.#probe();
    else if (this.report.condition === 'unknown') this.#update();
  }

  /**
   * A probe, or something else that is no request of calls, has shown how the server is.
   *
   * @param failure why it has failed; undefined: the server answers, and can be called
   * @param trouble what it shows; undefined: the server has not answered
   */
  checked(failure?: string, trouble?: Trouble): void {
    if (this.#hasEnded) return;
    if (this.#phase === 'probing' && failure === undefined) {
      this.#answered();
      this.#resume();
    } else if (failure === undefined) this.heard();
    else {
      if (trouble === 'failing') this.#lastHeard = this.#now();
      if (this.#phase === 'probing') this.#open(trouble ?? this.#troubleOfNoAnswer, failure);
      else if (this.#phase === 'closed') this.#judge('bad', { reason: failure, trouble });
    }
  }

  /** There are so many connections. @param reason why there is none */
  connected(connections: number, reason?: string): void {
    if (this.#hasEnded) return;
    this.#connections = connections;
    if (connections === 0) {
      if (this.#trouble === 'away') return;
      // Calls fail by themselves, until so many have that they are held back.
      if (this.#phase !== 'closed') return this.#open('away', reason);
      this.#begin('away', reason);
      return this.#tell();
    }
    // The handshake was answered.
    this.#answered();
    if (this.#trouble === 'away' && this.#phase !== 'resuming') this.#resume();
    else if (this.#phase === 'open' && this.#options.probe !== undefined) this.#probe();
  }

  /** The server is no longer used. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#timer?.unsubscribe();
    this.#watch?.unsubscribe();
    this.trips.close();
    const isUp = this.#trouble === undefined;
    this.#phase = 'closed';
    this.#trouble = undefined;
    this.#endFault(isUp);
    this.#reports$.complete();
  }

  get #silence(): number {
    return this.#options.silence ?? THRESHOLDS.silent;
  }

  /** When the server was heard of last, or has been asked since. */
  get #quietSince(): number {
    return Math.max(this.trips.oldest ?? Infinity, this.#lastHeard);
  }

  get #troubleOfNoAnswer(): Trouble {
    return this.#now() - this.#lastHeard >= this.#silence ? 'silent' : 'failing';
  }

  #answered(): void {
    this.#lastHeard = this.#now();
    this.#lastSuccess = this.#options.scheduler.now();
    if (this.report.condition === 'unknown') this.#update();
  }

  #judge(outcome: ServerOutcome, { reason, trouble }: Pick<Ended, 'reason' | 'trouble'>): void {
    if (outcome === 'none') return;
    if (outcome === 'ok') {
      this.#row = 0;
      if (this.#trouble !== undefined && this.#trouble !== 'away') this.#recovered();
      else if (this.#fault === undefined) this.#affected = 0;
      return;
    }
    const { inARow, ofAtLeast } = THRESHOLDS.failing;
    const most = this.#options.failures || inARow;
    this.#row += 1;
    if (this.#row < most && !this.#recent.areMostlyBad(Math.max(ofAtLeast, 2 * most))) return;
    this.#open(this.#connections === 0 ? 'away' : (trouble ?? this.#troubleOfNoAnswer), reason);
  }

  #judgeProbe(outcome: ServerOutcome, { reason, trouble }: Pick<Ended, 'reason' | 'trouble'>): void {
    if (outcome === 'ok') this.#resume();
    else if (outcome === 'bad') this.#open(trouble ?? this.#troubleOfNoAnswer, reason);
    else this.#phase = 'idle';
  }

  #begin(trouble: Trouble, reason: string | undefined): void {
    this.#fault ??= { began: this.#options.scheduler.now(), over: 0, openings: 0, isTold: false };
    this.#trouble = trouble;
    if (reason !== undefined) this.#reason = reason;
    this.#timer?.unsubscribe();
  }

  #open(trouble: Trouble, reason: string | undefined): void {
    this.#begin(trouble, reason);
    this.#phase = 'open';
    const openings = (this.#fault!.openings += 1);
    const waits = this.#options.probe === undefined ? WAITS : TIMED_WAITS;
    // A pool connects again by itself.
    if (this.#connections !== 0) this.#after(waits(openings), () => this.#probe());
    this.#tellFault();
    this.#tell();
  }

  #probe(): void {
    const { probe, limit = PROBE_LIMIT } = this.#options;
    this.#phase = probe === undefined ? 'idle' : 'probing';
    if (probe === undefined) return;
    this.#lastProbe = this.#now();
    this.#after(Math.min(limit, PROBE_LIMIT), () => this.checked('it does not answer'));
    probe();
  }

  /** The server answers: what could not be sent before is added first. */
  #resume(): void {
    this.#timer?.unsubscribe();
    this.#phase = 'resuming';
    const resumed = (isAdded: boolean): void => {
      if (this.#phase !== 'resuming' || this.#hasEnded) return;
      if (isAdded) this.#resumed();
      else this.#open(this.#trouble ?? 'failing', undefined);
    };
    if (this.beforeResuming === undefined) resumed(true);
    else this.beforeResuming(resumed);
  }

  #resumed(): void {
    const { failures, probe } = this.#options;
    this.#phase = 'closed';
    this.#recent.forget();
    if (this.#trouble !== 'failing' || probe === undefined || failures === 0) return this.#recovered();
    // A probe does not show that it counts: the next request does.
    this.#row = failures - 1;
    this.#after(HALF_OPEN, () => this.#recovered());
    this.#tell();
  }

  #recovered(): void {
    this.#row = 0;
    this.#trouble = undefined;
    this.#reason = undefined;
    if (this.#fault !== undefined) this.#fault.over = this.#options.scheduler.now();
    this.#after(QUIET, () => this.#endFault(true));
    this.#tell();
  }

  /** The calls of the present fault so far, as of {@link Fault.calls}; undefined: there is none. */
  get affected(): number | undefined {
    return this.#fault && this.#affected;
  }

  #tellFault(): void {
    if (this.#fault === undefined || this.#fault.isTold) return;
    this.#fault.isTold = true;
    this.#options.observer?.faultBegan?.(this.#present());
  }

  #endFault(isUp: boolean): void {
    if (this.#fault === undefined) return;
    const { scheduler, observer } = this.#options;
    const { began, over, isTold } = this.#fault;
    this.#lastFault = { began, milliseconds: (isUp ? over : scheduler.now()) - began, calls: this.#affected, isUp };
    this.#fault = undefined;
    this.#affected = 0;
    this.#tell();
    if (isTold) observer?.faultEnded?.(this.#lastFault);
  }

  #after(milliseconds: number, act: () => void): void {
    this.#timer?.unsubscribe();
    this.#timer = this.#options.scheduler.schedule(act, milliseconds);
  }

  /** After a standstill of the process, replies that have arrived are read first. */
  #lookAfter(milliseconds: number): void {
    this.#watch = afterTime(this.#options.scheduler, Math.max(1, Math.ceil(milliseconds)), {
      onElapsed: () => {
        this.#watch = undefined;
        const next = this.#look();
        if (next !== undefined && this.#watch === undefined) this.#lookAfter(next);
      },
    });
  }

  /**
   * Looks whether the server is silent, slow, or not known any more. Returns milliseconds to the next look, if there is
   * to be one.
   */
  #look(): number | undefined {
    const now = this.#now();
    this.#update();
    const { checkEvery, probe } = this.#options;
    if (this.trips.oldest === undefined) {
      if (checkEvery === undefined) {
        const isKnown = this.report.condition !== 'unknown' && this.#trouble === undefined;
        return isKnown && (this.#isSlow || this.#connections === undefined) ? THRESHOLDS.silent : undefined;
      }
      const left = this.#lastHeard + checkEvery - now;
      if (left > 0) return left;
      if (this.#phase === 'closed') probe?.();
      return checkEvery;
    }
    const left = this.#quietSince + this.#silence - now;
    if (left > 0) return left;
    // The last calls have all the time that is left.
    const isNews = this.#trouble === undefined || this.#trouble === 'failing';
    if (isNews && !this.#isDraining) this.#open('silent', 'it does not answer');
    return checkEvery;
  }

  /** Tells the condition if it has changed. */
  #update(): void {
    const { latency } = this.#recent.rates(10);
    this.#isSlow = latency !== null && latency > THRESHOLDS.slow;
    if (this.#condition !== this.report.condition) this.#tell();
  }

  get #condition(): Condition {
    if (this.#trouble !== undefined) return this.#trouble;
    const isWatched = this.#connections !== undefined && this.#connections > 0;
    if (!isWatched && this.#now() - this.#lastHeard >= THRESHOLDS.unknown) return 'unknown';
    return this.#isSlow ? 'slow' : 'answering';
  }

  #tell(): void {
    this.#reports$.next(this.#present());
  }

  #present(): ServerReport {
    const condition = this.#condition;
    const { condition: before, since } = this.report;
    return this.#reportOf(condition, condition === before ? since : this.#options.scheduler.now());
  }

  #reportOf(condition: Condition, since: number): ServerReport {
    return {
      ...this.name,
      ...{ condition, since, reason: this.#reason, lastSuccess: this.#lastSuccess, lastFault: this.#lastFault },
      troubleSince: this.#trouble && this.#fault?.began,
      isHeldBack: this.#options.failures > 0 && this.#phase !== 'closed',
    };
  }
}
