import type { Observable } from 'rxjs';
import type { Ruleset } from '../../rules/ruleset';

/** Where a ruleset came from, for people: `/rlconfig` and the log say it. */
export interface RuleOrigin {
  /** For example `files in /srv/runtime_data/current/config` or `xDS server localhost:18000`. */
  readonly source: string;
  /** What distinguishes this load from the one before: a version of the source, or the folder's real path. */
  readonly version: string;
}

export interface RulesLoaded {
  readonly kind: 'loaded';
  readonly ruleset: Ruleset;
  readonly origin: RuleOrigin;
  /** What loads but means less than it seems; one sentence each. */
  readonly warnings: readonly string[];
  /** How many files the rules were read from; undefined where they do not come from files. */
  readonly files?: number;
}

export interface RulesRejected {
  readonly kind: 'rejected';
  /** What was wrong and where, for the log; several lines when several things were. */
  readonly reason: string;
  /** The very rules that were refused last have been sent again: it counts as another load, but there is nothing new to say. */
  readonly isRepeated?: true;
}

export type RuleEvent = RulesLoaded | RulesRejected;

/** A place that rules come from. It watches while it is subscribed to. */
export interface RuleSource {
  /**
   * The present rules first, then every change of them. A source that finds bad rules says so with `rejected` and goes on:
   * the stream neither fails nor completes by itself. Unsubscribing lets go of watches, connections and timers.
   */
  readonly events$: Observable<RuleEvent>;
}
