import { type OperatorFunction, type SchedulerLike, filter, scan, startWith } from 'rxjs';
import type { Ruleset } from '../rules/ruleset';
import type { RuleEvent, RuleOrigin } from './ports/rule-source';

/** The active rules, and whether the newest ones were rejected. */
export interface CurrentConfig {
  /** The last good rules; undefined before the first. */
  readonly loaded: LoadedConfig | undefined;
  /** Why the newest rules are not active; undefined when they are. */
  readonly rejected: RejectedConfig | undefined;
}

export interface LoadedConfig {
  readonly ruleset: Ruleset;
  readonly origin: RuleOrigin;
  /** Unix time in milliseconds. */
  readonly at: number;
}

export interface RejectedConfig {
  readonly reason: string;
  /** Unix time in milliseconds. */
  readonly at: number;
}

/** The configuration before the first load. */
export const NO_CONFIG: CurrentConfig = { loaded: undefined, rejected: undefined };

/** Whether rules of at least one domain are active. */
export function hasDomain({ loaded }: CurrentConfig): boolean {
  return loaded !== undefined && loaded.ruleset.domains.size > 0;
}

/**
 * Folds the events of a rule source into the current configuration: loaded rules replace the active ones as a whole,
 * rejected rules change nothing but the rejection, a repeated load or rejection changes nothing. Emits
 * {@link NO_CONFIG} at once, then once per event that is not repeated; completes and fails with the source.
 */
export function currentConfig(scheduler: SchedulerLike): OperatorFunction<RuleEvent, CurrentConfig> {
  return (events$) =>
    events$.pipe(
      filter(({ isRepeated }) => isRepeated !== true),
      scan((current: CurrentConfig, event): CurrentConfig => {
        const at = scheduler.now();
        if (event.kind === 'rejected') return { ...current, rejected: { reason: event.reason, at } };
        const loadedAt = event.isResent === true ? (current.loaded?.at ?? at) : at;
        return { loaded: { ruleset: event.ruleset, origin: event.origin, at: loadedAt }, rejected: undefined };
      }, NO_CONFIG),
      startWith(NO_CONFIG),
    );
}
