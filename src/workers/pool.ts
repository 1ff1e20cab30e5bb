import { BehaviorSubject, type Observable, Subject, filter, firstValueFrom, merge, take, timer } from 'rxjs';
import { backoff } from '../streams/backoff';
import type { Log } from '../streams/ports/log';
import { asError } from '../text/thrown';
import type { Order, Report, WorkerExit, WorkerProcess, WorkerState } from './process';

/** Milliseconds between two questions to a worker whether it is alive. */
const PING_INTERVAL = 1_000;
/** Milliseconds of silence after which a worker does not answer: longer than a process waits for its turn on a busy machine. */
export const SILENT_AFTER = 10_000;
/** … and after which it is killed: far longer than a heap snapshot or a collection takes, or than a new worker takes to load its program. */
const STUCK_AFTER = 60_000;

/** How long the replacement of a worker waits, while those of its number keep dying. */
const delayAfter = backoff({ initial: 100, max: 10_000 });
/** A worker that lived this long, in milliseconds, is not counted as one that keeps dying. */
const STABLE = 60_000;

/** A worker that runs. */
export interface Member {
  readonly process: WorkerProcess;
  /** As last reported; undefined until its program runs. */
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

export interface WorkerPoolOptions {
  readonly count: number;
  /** Starts a worker; throws when the system does not permit it. */
  readonly fork: (number: number) => WorkerProcess;
  readonly log: Log;
}

/** What is known of the workers of one number. */
interface Slot {
  /** How often one was started. */
  starts: number;
  /** How many in a row have not been stable. */
  failures: number;
}

interface End {
  /** Milliseconds from the start of the worker. */
  readonly lived: number;
  readonly reason: string;
  /** The reason as the worker itself has reported it. */
  readonly failure?: string | undefined;
}

/** Keeps a number of workers running, from {@link start} until {@link drain}. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #members = new BehaviorSubject<readonly Member[]>([]);
  readonly #started = new Subject<WorkerProcess>();
  readonly #serving = new Subject<WorkerProcess>();
  readonly #failed = new Subject<never>();
  readonly #slots = new Map<number, Slot>();
  /** How many questions in a row each worker has not answered. */
  readonly #unanswered = new Map<WorkerProcess, number>();
  readonly #announced = new Map<Order['kind'], Order>();
  /** Workers that were killed before they were serving, because the drain has begun. */
  readonly #dismissed = new Set<WorkerProcess>();
  #pings: NodeJS.Timeout | undefined;
  /** Whether all workers have been serving at the same time. */
  #isComplete = false;
  /** `draining`: no worker is replaced. `over`: the workers end with the instance, and how does not matter. */
  #phase: 'running' | 'draining' | 'over' = 'running';
  #hasLostCalls = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
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

  /** How often the worker of a number has been replaced. */
  restartsOf(number: number): number {
    return this.#slot(number).starts - 1;
  }

  /** Gives an order to all workers, and the last one of its kind to each that starts later. */
  announce(order: Order): void {
    this.#announced.set(order.kind, order);
    for (const { process } of this.members) process.order(order);
  }

  start(): void {
    // A process that stood still for long counts that as one question, and reads the answers that arrived meanwhile before the next.
    this.#pings = setInterval(() => this.#ping(), PING_INTERVAL);
    for (let number = 1; number <= this.#options.count; number += 1) this.#fork(number);
  }

  /** The drain begins: replaces no worker any more, so that the calls of one that ends are lost. */
  stopReplacing(): void {
    this.#phase = 'draining';
  }

  /**
   * Replaces no worker any more and orders all to drain. Resolves when every one has drained or ended; those that are starting are
   * ended at once.
   */
  async drain(): Promise<void> {
    this.stopReplacing();
    for (const { process, isServing } of this.members) {
      if (isServing) continue;
      this.#dismissed.add(process);
      process.kill();
    }
    const drained = this.members.map(({ process }) => {
      const drained$ = process.reports$.pipe(filter(({ kind }) => kind === 'drained'));
      return firstValueFrom(merge(drained$, process.exited$));
    });
    for (const { process } of this.members) process.order({ kind: 'drain' });
    await Promise.all(drained);
  }

  /** Orders the workers to exit. Resolves when all have. */
  async finish(): Promise<void> {
    const exits = this.members.map(({ process }) => firstValueFrom(process.exited$));
    for (const { process } of this.members) process.order({ kind: 'finish' });
    await Promise.all(exits);
  }

  /** Ends all workers at once. */
  kill(): void {
    this.#phase = 'over';
    clearInterval(this.#pings);
    for (const { process } of this.members) process.kill();
  }

  /** Kills a worker that does not answer, and logs why. It is replaced. */
  killSilent(process: WorkerProcess, reason: string): void {
    this.#options.log.error('a worker does not answer and is killed', { worker: process.number, reason });
    process.kill();
  }

  #slot(number: number): Slot {
    let slot = this.#slots.get(number);
    if (slot === undefined) this.#slots.set(number, (slot = { starts: 0, failures: 0 }));
    return slot;
  }

  #fork(number: number): void {
    const slot = this.#slot(number);
    slot.starts += 1;
    let process: WorkerProcess;
    try {
      process = this.#options.fork(number);
    } catch (error) {
      this.#ended(number, { lived: 0, reason: `it could not be started: ${asError(error).message}` });
      return;
    }
    this.#members.next([...this.members, { process, state: undefined, isServing: false, isResponsive: true }]);
    this.#unanswered.set(process, 0);
    let failure: string | undefined;
    // These complete with the process.
    // oxlint-disable-next-line house-style/kept-subscriptions
    process.reports$.subscribe((report) => {
      if (report.kind === 'failed') failure = report.reason;
      this.#reported(process, report);
    });
    // oxlint-disable-next-line house-style/kept-subscriptions
    process.exited$.subscribe((exit) => {
      const member = this.#memberOf(process);
      this.#members.next(this.members.filter((other) => other !== member));
      this.#unanswered.delete(process);
      const reason = failure ?? describeExit(exit);
      if (this.#phase !== 'draining')
        this.#ended(number, { lived: performance.now() - process.startedAt, reason, failure });
      else if (member?.isServing === true) this.#endedWhileDraining(process, exit, reason);
    });
    this.#started.next(process);
    for (const order of this.#announced.values()) process.order(order);
    process.channel.start();
  }

  #reported(process: WorkerProcess, report: Report): void {
    // Whatever it reports, it lives.
    this.#unanswered.set(process, 0);
    this.#responded(process, true);
    if (report.kind === 'state') this.#update(process, { state: report.state });
    if (report.kind !== 'serving') return;
    const { store } = report;
    const serving = this.members.filter((member) => member.isServing || member.process === process);
    this.#isComplete ||= serving.length === this.#options.count;
    this.#update(process, { isServing: true, store });
    this.#serving.next(process);
  }

  #ping(): void {
    for (const { process } of this.members) {
      const unanswered = this.#unanswered.get(process) ?? 0;
      const silence = unanswered * PING_INTERVAL;
      // Also before it serves, because a worker may stand still then.
      if (silence === STUCK_AFTER) this.killSilent(process, `it has not answered for ${STUCK_AFTER} ms`);
      else if (silence >= SILENT_AFTER) this.#responded(process, false);
      this.#unanswered.set(process, unanswered + 1);
      process.order({ kind: 'ping' });
    }
  }

  #responded(process: WorkerProcess, isResponsive: boolean): void {
    const { log } = this.#options;
    const member = this.#memberOf(process);
    // Before it serves, a worker has no connections, and it may take long to load its program on a busy machine.
    if (member?.isServing !== true || member.isResponsive === isResponsive) return;
    const worker = process.number;
    if (isResponsive) log.warn('a worker answers again', { worker });
    else log.warn('a worker does not answer; others get the new connections', { worker });
    this.#update(process, { isResponsive });
  }

  #ended(number: number, { lived, reason, failure }: End): void {
    if (this.#phase === 'over') return;
    if (!this.#isComplete) {
      this.#phase = 'over';
      this.#failed.error(new Error(failure ?? `worker ${number} ended before it was ready: ${reason}`));
      return;
    }
    const slot = this.#slot(number);
    slot.failures = lived >= STABLE ? 1 : slot.failures + 1;
    const delay = delayAfter(slot.failures);
    this.#options.log.error('a worker has ended; its calls have failed, and it is replaced', {
      worker: number,
      reason,
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

  #endedWhileDraining(process: WorkerProcess, exit: WorkerExit, reason: string): void {
    if (exit.code === 0 || this.#dismissed.has(process)) return;
    this.#hasLostCalls = true;
    this.#options.log.error('a worker has ended while it drained; its calls have failed', {
      worker: process.number,
      reason,
    });
  }

  #memberOf(process: WorkerProcess): Member | undefined {
    return this.members.find((member) => member.process === process);
  }

  #update(process: WorkerProcess, change: Partial<Member>): void {
    this.#members.next(this.members.map((member) => (member.process === process ? { ...member, ...change } : member)));
  }
}

function describeExit({ code, signal, error }: WorkerExit): string {
  if (error !== undefined) return `it could not be started: ${error.message}`;
  return signal === null ? `exit code ${code}` : `killed by ${signal}`;
}
