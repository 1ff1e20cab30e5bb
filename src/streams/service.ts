import { type Observable, filter, map, merge, of, share } from 'rxjs';
import { type CurrentConfig, NO_CONFIG, currentConfig, hasDomain } from './config';
import { type Decisions, type DecisionsOptions, decisions } from './decisions';
import { type Latest, latest } from './latest';
import type { ApplyOperations, Decide } from './ports/decide';
import type { RuleEvent } from './ports/rule-source';
import { Readiness, type StoreNote, awaited, health } from './readiness';
import type { Batch } from '../counting/batch';

/** What changes by itself. The streams are subscribed to while those of the service are. */
export interface ServiceSources {
  /** Loads of rules; the stream neither fails nor completes. */
  readonly rules$: Observable<RuleEvent>;
  /** Whether the counter store can be reached: the present state on subscribing, then every change. */
  readonly storeConnected$: Observable<boolean>;
  /** Emits when the counter store has been reached for the first time; an error ends the service. */
  readonly storeReady$: Observable<unknown>;
  /** The signals that end the process, shared: the first one starts the drain. */
  readonly termination$: Observable<unknown>;
}

/** What the decision path is made of; the scheduler also dates loads of rules. */
export type ServiceDependencies = Omit<DecisionsOptions, 'ruleset'>;

export interface ServiceOptions {
  /** FORCE_START_WITHOUT_INITIAL_CONFIG: the service does not wait for the first rules. */
  readonly startsWithoutRules: boolean;
  /** HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: the service is unhealthy without rules of at least one domain. */
  readonly needsDomain: boolean;
  /** What probes add to the check of the store while it does not fail; undefined: nothing. */
  readonly storeNote?: ((config: CurrentConfig) => StoreNote) | undefined;
}

export interface Service {
  /** Decides one request; see {@link Decide}. Works while `flow$` is subscribed to. */
  readonly decide: Decide;
  /** Reads counters; see {@link ApplyOperations}. Works as `decide` does. */
  readonly apply: ApplyOperations;
  /** See {@link Decisions.release}. */
  readonly release: Decisions['release'];
  /** See {@link Decisions.logTo}. */
  readonly logTo: Decisions['logTo'];
  /** The active rules and the last rejection. */
  readonly config$: Latest<CurrentConfig>;
  /**
   * Whether the service can be called. It serves when store and rules are there, and drains from the first signal on.
   */
  readonly readiness: Readiness;
  /**
   * Each pipeline window when it has settled; shared. Completes after {@link complete}, when no window is in flight.
   */
  readonly windows$: Observable<Batch>;
  /** All streams of the service, whose last values are current while it is subscribed to. */
  readonly flow$: Observable<unknown>;
  /** Rejects further decisions with `shutting_down`; those in flight are still answered. */
  complete(): void;
}

/** Wires the streams of the service: configuration, health, phase and decisions. Subscribes to nothing by itself. */
export function service(
  { rules$, storeConnected$, storeReady$, termination$ }: ServiceSources,
  dependencies: ServiceDependencies,
  { startsWithoutRules, needsDomain, storeNote }: ServiceOptions,
): Service {
  const config$ = latest(rules$.pipe(currentConfig(dependencies.scheduler)), NO_CONFIG);
  const components = {
    'counter store': storeConnected$,
    ...(needsDomain && { configuration: config$.pipe(map(hasDomain)) }),
  };
  const configured$ = startsWithoutRules ? of(true) : config$.pipe(filter(({ loaded }) => loaded !== undefined));
  const awaited$ = latest(awaited({ rules: configured$, 'counter store': storeReady$ }), ['rules', 'counter store']);
  const path = decisions({
    ...dependencies,
    ruleset: () => config$.value.loaded?.ruleset,
  });
  const readiness = new Readiness({
    health$: health(components, termination$),
    awaited$,
    termination$,
    hasWorkers: false,
    storeNote: storeNote && (() => storeNote(config$.value)),
  });
  const windows$ = path.windows$.pipe(share());
  return {
    decide: path.decide,
    apply: path.apply,
    release: path.release,
    logTo: path.logTo,
    config$,
    readiness,
    windows$,
    flow$: merge(config$, readiness.health$, windows$),
    complete: () => path.complete(),
  };
}
