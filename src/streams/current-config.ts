import { type OperatorFunction, type SchedulerLike, scan, startWith } from 'rxjs';
import type { Ruleset } from '../rules/ruleset';
import type { RuleEvent, RuleOrigin } from './ports/rule-source';

/** The rules in force and what became of the newest ones. */
export interface CurrentConfig {
  /** The last good rules; undefined before the first. */
  readonly loaded: LoadedConfig | undefined;
  /** Why the newest rules are not in force; undefined when they are. */
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

const NOTHING_YET: CurrentConfig = { loaded: undefined, rejected: undefined };

/**
 * Folds a source's events into the rules in force: good ones take the place of the last, whole; bad ones leave them as they
 * are. Emits at once (nothing loaded yet) and then for each event; completes and fails with the source.
 */
export function currentConfig(scheduler: SchedulerLike): OperatorFunction<RuleEvent, CurrentConfig> {
  return (events$) =>
    events$.pipe(
      scan((current: CurrentConfig, event): CurrentConfig => {
        const at = scheduler.now();
        if (event.kind === 'rejected') return { ...current, rejected: { reason: event.reason, at } };
        return { loaded: { ruleset: event.ruleset, origin: event.origin, at }, rejected: undefined };
      }, NOTHING_YET),
      startWith(NOTHING_YET),
    );
}
