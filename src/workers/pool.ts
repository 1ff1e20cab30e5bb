import {
  BehaviorSubject,
  NEVER,
  type Observable,
  Subject,
  type Subscription,
  asyncScheduler,
  defer,
  filter,
  finalize,
  firstValueFrom,
  interval,
  merge,
  mergeMap,
  take,
  timer,
} from 'rxjs';
import type { Log } from '../log/log';
import { backoff } from '../streams/backoff';
import { asError } from '../text/thrown';
import type { Order, Report, WorkerExit, WorkerProcess } from './process';

/** Milliseconds between two requests that show whether a worker answers. */
const PING_INTERVAL = 1_000;
/**
 * Milliseconds of silence after which a worker does not answer: longer than a process waits for its turn on a busy
 * machine.
 */
export const SILENT_AFTER = 10_000;
/**
 * … and after which it is killed, if it has not ended itself: far longer than a collection takes, or than a new worker
 * takes to load its program. …
 */
const STUCK_AFTER = 60_000;
/** … and while a heap snapshot of it is taken, which takes minutes with a heap of several GB. */
const RECORDED_STUCK_AFTER = 600_000;

/** How long the replacement of a worker waits, while those of its number keep dying. */
const delayAfter = backoff({ initial: 100, max: 10_000 });
/** A worker that lived this long, in milliseconds, is not counted as one that keeps dying. */
const STABLE = 60_000;

export interface WorkerPoolOptions {
  readonly count: number;
  /** Starts a worker; throws when the system does not permit it. */
  readonly fork: (number: number) => WorkerProcess;
  readonly log: Log;
  readonly scheduler?: typeof asyncScheduler;
}

/** What is known of the workers of one number. */
interface Slot {
  /** How often one was started. */
  starts: number;
  /** How many in a row have not been stable. */
  failures: number;
}

/** Keeps a number of workers running, while {@link running$} is subscribed to and until {@link drain}. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #scheduler: typeof asyncScheduler;
  readonly #workers = new BehaviorSubject<readonly WorkerProcess[]>([]);
  readonly #started = new Subject<WorkerProcess>();
  readonly #serving = new Subject<WorkerProcess>();
  readonly #failed = new Subject<never>();
  readonly #slots = new Map<number, Slot>();
  readonly #announced = new Map<Order['kind'], Order>();
  /** Workers that were killed before they were serving, because the drain has begun. */
  readonly #dismissed = new Set<WorkerProcess>();
  /** Whether all workers have been serving at the same time. */
  #isComplete = false;
  /** `draining`: no worker is replaced. `over`: the workers end with the instance, and how does not matter. */
  #phase: 'running' | 'draining' | 'over' = 'running';
  #hasLostCalls = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#scheduler = options.scheduler ?? asyncScheduler;
  }

  /** Starts the workers on subscribing, and kills those that are left on unsubscribing. Never emits. */
  get running$(): Observable<never> {
    return defer(() => {
      for (let number = 1; number <= this.#options.count; number += 1) this.#fork(number);
      return NEVER;
    }).pipe(
      finalize(() => {
        this.#phase = 'over';
        for (const worker of this.workers) worker.kill();
      }),
    );
  }

  /** The workers that run, on subscription and at every change. */
  get workers$(): Observable<readonly WorkerProcess[]> {
    return this.#workers.asObservable();
  }

  get workers(): readonly WorkerProcess[] {
    return this.#workers.value;
  }

  /** Emits each worker when it has been started, before anything it sends is read: the time to prepare its channel. */
  get started$(): Observable<WorkerProcess> {
    return this.#started.asObservable();
  }

  /** Emits each worker when it begins to take connections. */
  get serving$(): Observable<WorkerProcess> {
    return this.#serving.asObservable();
  }

  /** Emits when all workers are serving for the first time; fails when one of them ends before. */
  get complete$(): Observable<unknown> {
    return merge(this.#failed, this.#workers.pipe(filter(() => this.#isComplete))).pipe(take(1));
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
    for (const worker of this.workers) worker.order(order);
  }

  /** The drain begins: replaces no worker any more, so that the calls of one that ends are lost. */
  stopReplacing(): void {
    this.#phase = 'draining';
  }

  /**
   * Replaces no worker any more and orders all to drain. Resolves when every one has drained or ended; those that are
   * starting are ended at once.
   *
   * @param within milliseconds after which the drain is aborted
   */
  async drain(within: number): Promise<void> {
    this.stopReplacing();
    for (const worker of this.workers) {
      if (worker.isServing) continue;
      this.#dismissed.add(worker);
      worker.kill();
    }
    const order: Order = { kind: 'drain', within };
    await Promise.all(this.workers.map((worker) => worker.call('drain', order)));
  }

  /** Orders the workers to exit. Resolves when all have. */
  async finish(): Promise<void> {
    const exits = this.workers.map(({ exited$ }) => firstValueFrom(exited$));
    for (const worker of this.workers) worker.order({ kind: 'finish' });
    await Promise.all(exits);
  }

  /** Kills a worker that does not answer, and logs why. It is replaced. */
  killSilent(worker: WorkerProcess, reason: string): void {
    this.#options.log.error('a worker does not answer and is killed', { worker: worker.number, reason });
    worker.kill();
  }

  #slot(number: number): Slot {
    let slot = this.#slots.get(number);
    if (slot === undefined) this.#slots.set(number, (slot = { starts: 0, failures: 0 }));
    return slot;
  }

  #fork(number: number): void {
    const slot = this.#slot(number);
    slot.starts += 1;
    let worker: WorkerProcess;
    try {
      worker = this.#options.fork(number);
    } catch (error) {
      this.#ended(number, `it could not be started: ${asError(error).message}`);
      return;
    }
    this.#workers.next([...this.workers, worker]);
    let failure: string | undefined;
    const life = this.#watch(worker);
    life.add(timer(STABLE, this.#scheduler).subscribe(() => (slot.failures = 0)));
    life.add(
      worker.reports$.subscribe((report) => {
        if (report.kind === 'failed') failure = report.reason;
        else this.#reported(worker, report);
      }),
    );
    // oxlint-disable-next-line house-style/kept-subscriptions -- completes with the process
    worker.exited$.subscribe((exit) => {
      life.unsubscribe();
      this.#workers.next(this.workers.filter((other) => other !== worker));
      const reason = failure ?? describeExit(exit);
      if (this.#phase !== 'draining') this.#ended(number, reason, failure);
      else if (worker.isServing) this.#endedWhileDraining(worker, exit, reason);
    });
    this.#started.next(worker);
    for (const order of this.#announced.values()) worker.order(order);
    worker.channel.start();
  }

  /** Examines every second whether a worker answers. What it reports shows that it does, too. */
  #watch(worker: WorkerProcess): Subscription {
    let unanswered = 0;
    // A process that stood still for long counts that as one request, and reads the answers that arrived meanwhile
    // before the next.
    const answers$ = interval(PING_INTERVAL, this.#scheduler).pipe(
      mergeMap(() => {
        const silence = unanswered * PING_INTERVAL;
        // Also before it serves, because a worker may stand still then.
        if (silence >= (worker.isRecorded ? RECORDED_STUCK_AFTER : STUCK_AFTER)) {
          this.killSilent(worker, `it has not answered for ${silence} ms`);
          unanswered = -Infinity;
        } else if (silence >= SILENT_AFTER) this.#responded(worker, false);
        unanswered += 1;
        return worker.channel.request('ping', null);
      }),
    );
    return merge(answers$, worker.reports$).subscribe(() => {
      unanswered = 0;
      this.#responded(worker, true);
    });
  }

  #reported(worker: WorkerProcess, report: Exclude<Report, { readonly kind: 'failed' }>): void {
    if (report.kind === 'state') worker.state = report.state;
    else if (report.kind === 'servers') worker.servers = report.servers;
    else {
      worker.store = report.store;
      worker.isServing = true;
      this.#isComplete ||= this.workers.filter(({ isServing }) => isServing).length === this.#options.count;
    }
    this.#changed();
    if (report.kind === 'serving') this.#serving.next(worker);
  }

  #responded(worker: WorkerProcess, isResponsive: boolean): void {
    // Before it serves, a worker has no connections, and it may take long to load its program on a busy machine.
    if (!worker.isServing || worker.isResponsive === isResponsive) return;
    const { log } = this.#options;
    const fields = { worker: worker.number };
    if (isResponsive) log.notice('a worker answers again', fields);
    else log.warn('a worker does not answer; others get the new connections', fields);
    worker.isResponsive = isResponsive;
    this.#changed();
  }

  /** @param failure the reason as the worker itself has reported it */
  #ended(number: number, reason: string, failure?: string): void {
    if (this.#phase === 'over') return;
    if (!this.#isComplete) {
      this.#phase = 'over';
      this.#failed.error(new Error(failure ?? `worker ${number} ended before it was ready: ${reason}`));
      return;
    }
    const slot = this.#slot(number);
    slot.failures += 1;
    const delay = delayAfter(slot.failures);
    const { log } = this.#options;
    const fields = { worker: number, reason, in: `${delay}ms` };
    log.error('a worker has ended; its calls have failed, and it is replaced', fields);
    if (!this.workers.some(({ isServing }) => isServing)) {
      log.error('no worker is ready; the service is unhealthy until one is');
    }
    // oxlint-disable-next-line house-style/kept-subscriptions -- ends by itself
    timer(delay, this.#scheduler).subscribe(() => {
      if (this.#phase === 'running') this.#fork(number);
    });
  }

  #endedWhileDraining(worker: WorkerProcess, exit: WorkerExit, reason: string): void {
    if (exit.code === 0 || this.#dismissed.has(worker)) return;
    this.#hasLostCalls = true;
    const fields = { worker: worker.number, reason };
    this.#options.log.error('a worker has ended while it drained; its calls have failed', fields);
  }

  #changed(): void {
    this.#workers.next([...this.workers]);
  }
}

function describeExit({ code, signal, error }: WorkerExit): string {
  if (error !== undefined) return `it could not be started: ${error.message}`;
  return signal === null ? `exit code ${code}` : `killed by ${signal}`;
}
