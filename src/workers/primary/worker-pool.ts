import { BehaviorSubject, EMPTY, type Observable, Subject, filter, forkJoin, merge, mergeMap, take, timer } from 'rxjs';
import type { Log } from '../../streams/ports/log';
import { asError } from '../../text/thrown';
import type { WorkerState } from '../messages';
import { RestartBackoff } from './backoff';
import { type Responsiveness, STUCK_AFTER } from './responsiveness';
import type { WorkerExit, WorkerProcess } from './worker-process';

/** A worker that runs. */
export interface Member {
  readonly process: WorkerProcess;
  /** As last reported. */
  readonly state: WorkerState | undefined;
  /** Whether it takes connections. */
  readonly isServing: boolean;
  /** False after ten seconds in which it did not answer. */
  readonly isResponsive: boolean;
  /** The description of its counter store; undefined before it is serving. */
  readonly store?: string;
}

/** Whether a worker decides calls and answers the primary. */
export function isReady({ isServing, isResponsive }: Pick<Member, 'isServing' | 'isResponsive'>): boolean {
  return isServing && isResponsive;
}

/** Kills a worker that has not answered, and logs why. */
export function killSilent(process: WorkerProcess, reason: string, log: Log): void {
  log.error('a worker does not answer and is killed', { worker: process.number, reason });
  process.kill();
}

export interface WorkerPoolOptions {
  readonly count: number;
  /** Starts a worker; throws when the system does not permit it. */
  readonly fork: (number: number) => WorkerProcess;
  readonly log: Log;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** Keeps a number of workers running, from {@link start} until {@link drain}. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #now: () => number;
  readonly #members = new BehaviorSubject<readonly Member[]>([]);
  readonly #started = new Subject<WorkerProcess>();
  readonly #serving = new Subject<WorkerProcess>();
  readonly #failed = new Subject<never>();
  readonly #backoffs = new Map<number, RestartBackoff>();
  /** Workers that were killed before they were serving, because the drain has begun. */
  readonly #dismissed = new Set<WorkerProcess>();
  /** Whether all workers have been serving at the same time. */
  #isComplete = false;
  /** `draining`: no worker is replaced. `over`: the workers end with the instance, and how does not matter. */
  #phase: 'running' | 'draining' | 'over' = 'running';
  #hasLostCalls = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** The workers that run, on subscription and at every change. */
  get members$(): Observable<readonly Member[]> {
    return this.#members.asObservable();
  }

  get members(): readonly Member[] {
    return this.#members.value;
  }

  /** Emits each worker when it has been started, before anything it sends is read: the time to subscribe to its channel. */
  get started$(): Observable<WorkerProcess> {
    return this.#started.asObservable();
  }

  /** Emits each worker when it begins to take connections. */
  get serving$(): Observable<WorkerProcess> {
    return this.#serving.asObservable();
  }

  /** Emits when all workers are serving for the first time; fails when one of them ends before. */
  get complete$(): Observable<unknown> {
    return merge(this.#failed, this.#members.pipe(filter(() => this.#isComplete))).pipe(take(1));
  }

  /** Whether a worker has failed calls during the drain: it was killed, or its own drain was not complete. */
  get hasLostCalls(): boolean {
    return this.#hasLostCalls;
  }

  start(): void {
    for (let number = 1; number <= this.#options.count; number += 1) this.#fork(number);
  }

  /** The drain begins: replaces no worker any more, so that the calls of one that ends are lost. */
  stopReplacing(): void {
    this.#phase = 'draining';
  }

  /**
   * Replaces no worker any more and orders all to drain. Completes when every one has drained or ended; those that are starting are
   * ended at once.
   */
  drain(): Observable<never> {
    this.stopReplacing();
    for (const { process, isServing } of this.members) {
      if (isServing) continue;
      this.#dismissed.add(process);
      process.kill();
    }
    const drained = this.members.map(({ process }) => {
      const drained$ = merge(process.reports$.pipe(filter(({ kind }) => kind === 'drained')), process.exited$);
      return drained$.pipe(take(1));
    });
    for (const { process } of this.members) process.order({ kind: 'drain' });
    return forkJoin(drained).pipe(mergeMap(() => EMPTY));
  }

  /** Orders the workers to exit. Completes when all have. */
  finish(): Observable<never> {
    const exits = this.members.map(({ process }) => process.exited$);
    for (const { process } of this.members) process.order({ kind: 'finish' });
    return forkJoin(exits).pipe(mergeMap(() => EMPTY));
  }

  /** Ends all workers at once. */
  kill(): void {
    this.#phase = 'over';
    for (const { process } of this.members) process.kill();
  }

  #fork(number: number): void {
    const startedAt = this.#now();
    let process: WorkerProcess;
    try {
      process = this.#options.fork(number);
    } catch (error) {
      this.#ended(number, { exit: { code: null, signal: null, error: asError(error) }, startedAt });
      return;
    }
    this.#change((members) => [...members, { process, state: undefined, isServing: false, isResponsive: true }]);
    let reason: string | undefined;
    // All of these complete with the process.
    // oxlint-disable-next-line house-style/kept-subscriptions
    process.states$.subscribe((state) => this.#update(process, { state }));
    // oxlint-disable-next-line house-style/kept-subscriptions
    process.reports$.subscribe((report) => {
      if (report.kind === 'failed') ({ reason } = report);
      else if (report.kind === 'serving') this.#isServing(process, report.store);
    });
    // From the start on, because a worker may stand still before it serves.
    // oxlint-disable-next-line house-style/kept-subscriptions
    process.responsiveness$.subscribe((responsiveness) => this.#responded(process, responsiveness));
    // oxlint-disable-next-line house-style/kept-subscriptions
    process.exited$.subscribe((exit) => {
      const member = this.members.find((other) => other.process === process);
      this.#change((members) => members.filter((other) => other !== member));
      if (this.#phase !== 'draining') this.#ended(number, { exit, startedAt, reason });
      else if (member?.isServing === true) this.#endedWhileDraining(process, exit, reason);
    });
    this.#started.next(process);
    process.start();
  }

  #isServing(process: WorkerProcess, store: string): void {
    this.#isComplete ||=
      this.members.filter((member) => member.isServing || member.process === process).length === this.#options.count;
    this.#update(process, { isServing: true, store });
    this.#serving.next(process);
  }

  #responded(process: WorkerProcess, responsiveness: Responsiveness): void {
    const { log } = this.#options;
    if (responsiveness === 'stuck') return killSilent(process, `it has not answered for ${STUCK_AFTER} ms`, log);
    const isResponsive = responsiveness === 'responsive';
    const member = this.members.find((other) => other.process === process);
    // Before it serves, a worker has no connections, and it may take long to load its program on a busy machine.
    if (member?.isServing !== true || member.isResponsive === isResponsive) return;
    const worker = process.number;
    if (isResponsive) log.warn('a worker answers again', { worker });
    else log.warn('a worker does not answer; others get the new connections', { worker });
    this.#update(process, { isResponsive });
  }

  #ended(
    number: number,
    { exit, startedAt, reason }: { exit: WorkerExit; startedAt: number; reason?: string | undefined },
  ): void {
    if (this.#phase === 'over') return;
    const how = reason ?? describeExit(exit);
    if (!this.#isComplete) {
      this.#phase = 'over';
      this.#failed.error(new Error(reason ?? `worker ${number} ended before it was ready: ${how}`));
      return;
    }
    let backoff = this.#backoffs.get(number);
    if (backoff === undefined) this.#backoffs.set(number, (backoff = new RestartBackoff()));
    const delay = backoff.delayAfter(this.#now() - startedAt);
    this.#options.log.error('a worker has ended; its calls have failed, and it is replaced', {
      worker: number,
      reason: how,
      in: `${delay}ms`,
    });
    if (this.members.every(({ isServing }) => !isServing)) {
      this.#options.log.error('no worker is ready; the service is unhealthy until one is');
    }
    // oxlint-disable-next-line house-style/kept-subscriptions -- ends by itself
    timer(delay).subscribe(() => {
      if (this.#phase === 'running') this.#fork(number);
    });
  }

  #endedWhileDraining(process: WorkerProcess, exit: WorkerExit, reason: string | undefined): void {
    if (exit.code === 0 || this.#dismissed.has(process)) return;
    this.#hasLostCalls = true;
    this.#options.log.error('a worker has ended while it drained; its calls have failed', {
      worker: process.number,
      reason: reason ?? describeExit(exit),
    });
  }

  #update(process: WorkerProcess, change: Partial<Member>): void {
    this.#change((members) =>
      members.map((member) => (member.process === process ? { ...member, ...change } : member)),
    );
  }

  #change(change: (members: readonly Member[]) => readonly Member[]): void {
    this.#members.next(change(this.#members.value));
  }
}

function describeExit({ code, signal, error }: WorkerExit): string {
  if (error !== undefined) return `it could not be started: ${error.message}`;
  return signal === null ? `exit code ${code}` : `killed by ${signal}`;
}
