import { type Observable, type SchedulerLike, combineLatest, distinctUntilChanged, map, merge, startWith } from 'rxjs';
import { NO_CONFIG, currentConfig, hasDomain } from '../streams/config';
import { latest } from '../streams/latest';
import type { Service, ServiceOptions, ServiceSources } from '../streams/service';
import { type Awaited, Readiness, health } from '../streams/readiness';
import type { WorkerProcess } from './process';

export interface InstanceSources extends Pick<ServiceSources, 'rules$' | 'termination$'> {
  /** The workers that run. */
  readonly workers$: Observable<readonly Pick<WorkerProcess, 'state' | 'isReady'>[]>;
  /** Emits when all workers are serving for the first time; fails when the service cannot run. */
  readonly complete$: Observable<unknown>;
}

export interface InstanceOptions extends ServiceOptions {
  /** Dates the loads of rules. */
  readonly scheduler: SchedulerLike;
}

/**
 * Combines what the primary knows and what the workers report to what a single process has of itself. Subscribes to
 * nothing by itself.
 */
export function instanceOfWorkers(
  { rules$, workers$, complete$, termination$ }: InstanceSources,
  { startsWithoutRules, needsDomain, storeNote, scheduler }: InstanceOptions,
): Pick<Service, 'config$' | 'readiness' | 'flow$'> {
  const config$ = latest(rules$.pipe(currentConfig(scheduler)), NO_CONFIG);
  const components = {
    ...(needsDomain && { configuration: config$.pipe(map(hasDomain)) }),
    'counter store': workers$.pipe(
      map((workers) => workers.every(({ isReady, state }) => !isReady || state?.isStoreConnected === true)),
    ),
    workers: workers$.pipe(map((workers) => workers.some(({ isReady }) => isReady))),
  };
  const isConfigured$ = config$.pipe(map(({ loaded }) => startsWithoutRules || loaded !== undefined));
  const isComplete$ = complete$.pipe(
    map(() => true),
    startWith(false),
  );
  const awaited$ = latest<readonly Awaited[]>(
    combineLatest([isConfigured$, workers$, isComplete$]).pipe(
      map(([isConfigured, workers, isComplete]): readonly Awaited[] => {
        const items: Awaited[] = [];
        if (workers.some(({ state }) => state?.isStoreReady === false)) items.push('counter store');
        if (!isConfigured) items.push('rules');
        // What the workers wait for says more than that they are not ready.
        return items.length > 0 || isComplete ? items : ['workers'];
      }),
      distinctUntilChanged((one, other) => one.join() === other.join()),
    ),
    ['workers'],
  );
  const health$ = health(components, termination$);
  const readiness = new Readiness({
    ...{ health$, awaited$, termination$, hasWorkers: true },
    storeNote: storeNote && (() => storeNote(config$.value)),
  });
  return { config$, readiness, flow$: merge(config$, readiness.awaited$, health$) };
}
