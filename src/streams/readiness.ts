import {
  BehaviorSubject,
  EMPTY,
  type Observable,
  type SchedulerLike,
  catchError,
  combineLatest,
  concat,
  distinctUntilChanged,
  filter,
  map,
  merge,
  of,
  startWith,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { type Latest, latest } from './latest';
import type { Log } from '../log/log';

/** What the service waits for before it opens its listeners for decisions. */
export type Awaited = 'rules' | 'counter store' | 'workers';

/** Whether the service is healthy, and which of its components are not. */
export interface Health {
  readonly healthy: boolean;
  /** Names of the components that are not healthy. */
  readonly unhealthy: readonly string[];
}

/** The health before every component has reported its state. */
export const STARTING: Health = { healthy: false, unhealthy: [] };

/**
 * `starting`: the listeners for decisions are not open yet. `serving`: they may be open. `draining`: the process is
 * ending.
 */
export type Phase = 'starting' | 'serving' | 'draining';

/** What readiness depends on, as probes list it. */
export interface Check {
  readonly name: 'configuration' | 'store' | 'workers' | 'listeners' | 'draining';
  /** Why it fails, without addresses and credentials; undefined while it does not. */
  readonly failure: string | undefined;
  /** What is to be said of it while it does not fail; undefined: nothing. */
  readonly note?: string | undefined;
  /** Whether it works in part: the note says how. */
  readonly isDegraded?: boolean;
}

type Failure = Check & { readonly failure: string };

/** What an unhealthy component means for readiness. */
const UNHEALTHY: Readonly<Record<string, Failure>> = {
  configuration: { name: 'configuration', failure: 'no domain in the active rules' },
  'counter store': { name: 'store', failure: 'no connection to the counter store' },
  workers: { name: 'workers', failure: 'no worker is ready' },
  termination: { name: 'draining', failure: 'the process has received a termination signal' },
};

/** What a component that is awaited at the start means for readiness, and its line in the log. */
const AWAITED: Readonly<Record<Awaited, Failure & { readonly line: string }>> = {
  rules: {
    name: 'configuration',
    failure: 'waiting for the first valid rules',
    line: 'no active rules; not serving until valid rules are loaded',
  },
  'counter store': {
    name: 'store',
    failure: 'waiting for the counter store',
    line: 'no connection to the counter store; not serving until it is reached',
  },
  workers: {
    name: 'workers',
    failure: 'waiting for the workers',
    line: 'not all workers are ready; not serving until they are',
  },
};

/** Milliseconds after which it is logged what the service is waiting for. */
export const LOG_AFTER = 1_000;

/**
 * Combines the states of components into one health: healthy only while every component is, and never after the first
 * termination. Emits when every component has reported its state, then at each change.
 *
 * @param components by name; a component that is switched off is left out
 */
export function health(
  components: Readonly<Record<string, Observable<boolean>>>,
  termination$: Observable<unknown>,
): Latest<Health> {
  const isRunning$ = termination$.pipe(
    map(() => false),
    startWith(true),
  );
  const health$ = combineLatest({ ...components, termination: isRunning$ }).pipe(
    map((states: Readonly<Record<string, boolean>>) => {
      const unhealthy = Object.keys(states).filter((name) => states[name] !== true);
      return { healthy: unhealthy.length === 0, unhealthy };
    }),
    distinctUntilChanged((one, other) => one.unhealthy.join() === other.unhealthy.join()),
  );
  return latest(health$, STARTING);
}

/**
 * What is still awaited, at first everything: each item until its stream has emitted, at the end the empty list.
 * Completes after that; an error of an input is passed on.
 */
export function awaited(done: Readonly<Partial<Record<Awaited, Observable<unknown>>>>): Observable<readonly Awaited[]> {
  const items = (Object.entries(done) as [Awaited, Observable<unknown>][]).map(([item, done$]) =>
    done$.pipe(
      take(1),
      map(() => undefined),
      startWith(item),
    ),
  );
  return combineLatest(items).pipe(map((all) => all.filter((item) => item !== undefined)));
}

/** What is to be said of the check of the store while it does not fail. */
export type StoreNote = Pick<Check, 'note' | 'isDegraded'>;

export interface ReadinessOptions {
  readonly health$: Latest<Health>;
  /** What is still awaited: the present list on subscribing, then every change; an error ends the service. */
  readonly awaited$: Latest<readonly Awaited[]>;
  /** The signals that end the process. */
  readonly termination$: Observable<unknown>;
  /** Whether the instance has workers. */
  readonly hasWorkers: boolean;
  /** Undefined: nothing. */
  readonly storeNote?: (() => StoreNote) | undefined;
}

/** Whether the service can be called: its health, and until its listeners are open what it waits for. */
export class Readiness {
  readonly health$: Latest<Health>;
  /** What is still awaited; an error of it, which {@link phase$} passes on, completes this. */
  readonly awaited$: Observable<readonly Awaited[]>;
  /**
   * `starting` at once, `serving` when nothing is awaited any more, `draining` at the first termination, which may come
   * in either phase; then it completes. An error of what is awaited is passed on.
   */
  readonly phase$: Observable<Phase>;
  readonly #awaited$: Latest<readonly Awaited[]>;
  readonly #hasWorkers: boolean;
  readonly #storeNote: () => StoreNote;
  readonly #hasOpened = new BehaviorSubject(false);

  constructor({ health$, awaited$, termination$, hasWorkers, storeNote }: ReadinessOptions) {
    this.health$ = health$;
    this.awaited$ = awaited$.pipe(catchError(() => EMPTY));
    this.#awaited$ = awaited$;
    this.#hasWorkers = hasWorkers;
    this.#storeNote = storeNote ?? (() => ({}));
    const serving$ = awaited$.pipe(
      filter((items) => items.length === 0),
      map((): Phase => 'serving'),
      take(1),
      takeUntil(termination$),
    );
    const draining$ = termination$.pipe(
      map((): Phase => 'draining'),
      take(1),
    );
    this.phase$ = concat(of<Phase>('starting'), merge(serving$, draining$));
  }

  /** The listeners for decisions are open. */
  opened(): void {
    this.#hasOpened.next(true);
  }

  get hasOpened(): boolean {
    return this.#hasOpened.value;
  }

  /** Emits once, when the listeners for decisions are open. */
  get opened$(): Observable<unknown> {
    return this.#hasOpened.pipe(filter((hasOpened) => hasOpened));
  }

  get health(): Health {
    const { healthy, unhealthy } = this.health$.value;
    if (this.hasOpened) return { healthy, unhealthy };
    return { healthy: false, unhealthy: [...unhealthy, ...missing(this.#awaited$.value)] };
  }

  /** What probes list, in this order. All pass exactly when the service is healthy and its listeners are open. */
  get checks(): readonly Check[] {
    const { healthy, unhealthy } = this.health$.value;
    const awaitedNow = this.hasOpened ? [] : this.#awaited$.value;
    const failures = [...awaitedNow.map((item) => AWAITED[item]), ...unhealthy.map((name) => UNHEALTHY[name])];
    const isKnown = healthy || failures.some((failure) => failure !== undefined);
    function check(name: Check['name']): Check {
      const failure = isKnown ? failures.find((failed) => failed?.name === name)?.failure : 'not reported yet';
      return { name, failure };
    }
    return [
      check('configuration'),
      { ...check('store'), ...this.#storeNote() },
      ...(this.#hasWorkers ? [check('workers')] : []),
      check('draining'),
      { name: 'listeners', failure: this.hasOpened ? undefined : 'not open yet' },
    ];
  }

  /** What the service does, in one line without addresses: now, and at every change. Never fails. */
  get status$(): Observable<string> {
    return combineLatest([this.#hasOpened, this.health$.pipe(startWith(STARTING)), this.awaited$]).pipe(
      map(([hasOpened, { healthy, unhealthy }, items]) => {
        if (hasOpened) return healthy ? 'serving' : `serving, but unhealthy: ${unhealthy.join(', ')}`;
        return `starting: ${missing(items).join(', ')}`;
      }),
    );
  }

  /** Logs what is still awaited one second after subscribing, one line for each item; then completes. */
  logAwaited(log: Log, scheduler: SchedulerLike): Observable<unknown> {
    return timer(LOG_AFTER, scheduler).pipe(
      tap(() => {
        for (const item of this.#awaited$.value) log.warn(AWAITED[item].line);
      }),
    );
  }
}

/** What is missing before the listeners are open, in words. */
function missing(items: readonly Awaited[]): readonly string[] {
  return items.length > 0 ? items.map((item) => AWAITED[item].failure) : ['opening the listeners'];
}
