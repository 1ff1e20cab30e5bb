import {
  type Observable,
  type SchedulerLike,
  combineLatest,
  concat,
  distinctUntilChanged,
  filter,
  map,
  of,
  startWith,
} from 'rxjs';
import { type Awaited, type Health, STARTING, health, type Phase, phases } from '../../streams/readiness';
import { type CurrentConfig, NO_CONFIG, currentConfig } from '../../streams/current-config';
import { type Latest, latest } from '../../streams/latest';
import type { RuleEvent } from '../../streams/ports/rule-source';
import { type Member, isReady } from './worker-pool';

type Members = readonly Pick<Member, 'state' | 'isServing' | 'isResponsive'>[];

export interface InstanceSources {
  /** Loads of rules; the stream neither fails nor completes. */
  readonly rules$: Observable<RuleEvent>;
  /** The workers that run. */
  readonly members$: Observable<Members>;
  /** Emits when all workers are serving for the first time; fails when the service cannot run. */
  readonly complete$: Observable<unknown>;
  /** The signals that end the process, shared. */
  readonly termination$: Observable<unknown>;
}

export interface InstanceOptions {
  readonly startsWithoutRules: boolean;
  readonly needsDomain: boolean;
  /** Dates the loads of rules. */
  readonly scheduler: SchedulerLike;
}

/** What concerns all processes of an instance, and is the same as `Service` has for a single process. */
export interface Instance {
  readonly config$: Latest<CurrentConfig>;
  readonly health$: Latest<Health>;
  readonly awaited$: Latest<readonly Awaited[]>;
  readonly phase$: Observable<Phase>;
}

/** Combines what the primary knows and what the workers report. Subscribes to nothing by itself. */
export function instance(
  { rules$, members$, complete$, termination$ }: InstanceSources,
  { startsWithoutRules, needsDomain, scheduler }: InstanceOptions,
): Instance {
  const config$ = latest(rules$.pipe(currentConfig(scheduler)), NO_CONFIG);
  const isConfigured$ = config$.pipe(map(({ loaded }) => startsWithoutRules || loaded !== undefined));
  const own$ = health({
    ...(needsDomain && {
      configuration: config$.pipe(map(({ loaded }) => loaded !== undefined && loaded.ruleset.domains.size > 0)),
    }),
    termination: concat(of(true), termination$.pipe(map(() => false))),
  });
  const awaited$ = latest<readonly Awaited[]>(
    combineLatest([isConfigured$, members$]).pipe(map(awaitedOf), distinctUntilChanged(isSame)),
    ['workers'],
  );
  const health$ = latest(
    combineLatest([own$, members$]).pipe(map(healthOf), distinctUntilChanged(isSameHealth)),
    STARTING,
  );
  const isReady$ = combineLatest([
    isConfigured$,
    complete$.pipe(
      map(() => true),
      startWith(false),
    ),
  ]);
  const ready$ = isReady$.pipe(filter(([isConfigured, isComplete]) => isConfigured && isComplete));
  return { config$, health$, awaited$, phase$: phases({ ready$, termination$ }) };
}

/** Unhealthy are the components that are unhealthy in any worker, and `workers` while none serves and answers. */
function healthOf([own, members]: readonly [Health, Members]): Health {
  const serving = members.filter(isReady);
  const ofWorkers = serving.flatMap(({ state }) => state?.health.unhealthy ?? []);
  const none = serving.length === 0 ? ['workers'] : [];
  const unhealthy = [...new Set([...own.unhealthy, ...ofWorkers, ...none])];
  return { healthy: unhealthy.length === 0, unhealthy };
}

function awaitedOf([isConfigured, members]: readonly [boolean, Members]): readonly Awaited[] {
  const ofWorkers = members.flatMap(({ state }) => state?.awaited ?? []);
  const items = new Set<Awaited>(ofWorkers.filter((item) => item !== 'rules'));
  if (!isConfigured) items.add('rules');
  // What the workers wait for themselves says more.
  if (items.size === 0 && (members.length === 0 || members.some(({ isServing }) => !isServing))) items.add('workers');
  return [...items];
}

function isSame<T extends string>(one: readonly T[], other: readonly T[]): boolean {
  return one.join() === other.join();
}

function isSameHealth(one: Health, other: Health): boolean {
  return isSame(one.unhealthy, other.unhealthy);
}
