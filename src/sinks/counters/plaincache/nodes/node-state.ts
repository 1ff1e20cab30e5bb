import { BehaviorSubject, type Observable } from 'rxjs';
import type { Log } from '../../../../streams/ports/log';
import { messageOf } from '../../../../text/thrown';
import { ConditionLog } from '../../../../streams/condition-log';

/** How often a node that is away is tried, in milliseconds. */
const PROBE_INTERVAL = 250;

/**
 * Whether a node answers. While it is away it is tried in the background, so that only the first calls wait for its timeout: the
 * others are answered at once.
 */
export class NodeState {
  /** The present state, then every change. */
  readonly isUp$: Observable<boolean>;
  readonly #isUp$ = new BehaviorSubject(true);
  readonly #away: ConditionLog;
  readonly #probe: () => Promise<unknown>;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param probe an exchange that shows whether the node answers */
  constructor(name: string, log: Log, probe: () => Promise<unknown>) {
    this.isUp$ = this.#isUp$.asObservable();
    this.#probe = probe;
    this.#away = new ConditionLog(log, {
      begins: 'a memcached server does not answer; its counters count as 0 and its hits are dropped until it does',
      ends: 'a memcached server answers again',
      fields: { server: name },
    });
  }

  get isUp(): boolean {
    return this.#isUp$.value;
  }

  /** The node has not answered. */
  failed(error: unknown): void {
    if (this.#isClosed) return;
    this.#away.because(messageOf(error));
    if (!this.isUp) return;
    this.#isUp$.next(false);
    this.#probeLater();
  }

  /** Tries the node once, whatever its state is. */
  check(): void {
    this.#probe().then(
      () => this.#answered(),
      (error: unknown) => this.failed(error),
    );
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#isUp$.complete();
  }

  #probeLater(): void {
    this.#timer = setTimeout(() => {
      this.#probe().then(
        () => this.#answered(),
        (error: unknown) => {
          this.#away.because(messageOf(error));
          if (!this.#isClosed) this.#probeLater();
        },
      );
    }, PROBE_INTERVAL);
    this.#timer.unref();
  }

  #answered(): void {
    if (this.#isClosed) return;
    this.#away.ended();
    if (!this.isUp) this.#isUp$.next(true);
  }
}
