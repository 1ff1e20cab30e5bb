import type { Observable } from 'rxjs';
import type { RuleFile } from '../../rules/files/read-rule-files';
import type { Ruleset } from '../../rules/ruleset';

/** Where a ruleset came from, human-readable: part of `/rlconfig` and of log lines. */
export interface RuleOrigin {
  /** For example `files in /srv/runtime_data/current/config` or `xDS server localhost:18000`. */
  readonly source: string;
  /** Distinguishes this load from the one before: a version of the source, or the real path of the folder. */
  readonly version: string;
}

export interface RulesLoaded {
  readonly kind: 'loaded';
  readonly ruleset: Ruleset;
  readonly origin: RuleOrigin;
  /** Rules that are valid but probably do not mean what was intended; one sentence each. */
  readonly warnings: readonly string[];
  /** How many files the rules were read from; undefined when they do not come from files. */
  readonly files?: number;
  /** The rule files with their texts, if they are not large. */
  readonly raw?: readonly RuleFile[] | undefined;
  /** How many versions the source has sent since the event before that were skipped in favour of this one. */
  readonly skipped?: number;
  /** The active rules have been loaded again: this counts as another load, and changes nothing. */
  readonly isRepeated?: true;
  /** The active rules have another version now: this is no load, and changes only what is shown as their version. */
  readonly isResent?: true;
}

export interface RulesRejected {
  readonly kind: 'rejected';
  /** What is wrong and where, for the log; one line per problem. */
  readonly reason: string;
  /** The problems for a page, each with its line and carets below it. Undefined when no line is known. */
  readonly report?: readonly string[] | undefined;
  /** As with {@link RulesLoaded}. */
  readonly raw?: readonly RuleFile[] | undefined;
  /** As with {@link RulesLoaded}. */
  readonly skipped?: number;
  /** The rules that were rejected last have been sent again: this counts as another load, but is not logged again. */
  readonly isRepeated?: true;
}

export type RuleEvent = RulesLoaded | RulesRejected;

/** A source of rules. It watches for changes while it is subscribed to. */
export interface RuleSource {
  /**
   * The present rules first, then every change. Invalid rules are reported as `rejected`; the stream neither fails nor
   * completes by itself. Unsubscribing releases watches, connections and timers.
   */
  readonly events$: Observable<RuleEvent>;
}
