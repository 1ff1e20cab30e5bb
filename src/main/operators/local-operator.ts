import type { Statistics } from '../../statistics/statistics';
import type { CurrentConfig } from '../../streams/current-config';
import type { Health } from '../../streams/health';
import type { Latest } from '../../streams/latest';
import type { ListedSetting, Operator, RuleListing } from '../../streams/ports/operator';
import { inParts } from './in-parts';
import { listRules } from './list-rules';

/** Listing so many takes less than a millisecond. */
const RULES_PER_PART = 200;
const STATISTICS_PER_PART = 1_000;

export interface LocalOperatorOptions {
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  readonly health: () => Health;
  readonly settings: readonly ListedSetting[];
}

/** Shows and changes the service of this process. */
export class LocalOperator implements Operator {
  readonly #options: LocalOperatorOptions;

  constructor(options: LocalOperatorOptions) {
    this.#options = options;
  }

  rules(domain: string | undefined): Promise<RuleListing | undefined> {
    const { config$, statistics } = this.#options;
    const { loaded, rejected } = config$.value;
    if (domain !== undefined && loaded?.ruleset.domain(domain) === undefined) return Promise.resolve(undefined);
    const rules = loaded === undefined ? [] : listRules(loaded.ruleset, domain, statistics);
    return Promise.resolve({
      loaded:
        loaded === undefined
          ? null
          : {
              source: loaded.origin.source,
              version: loaded.origin.version,
              at: isoTime(loaded.at),
              rules: loaded.ruleset.size,
            },
      rejected: rejected === undefined ? null : { reason: rejected.reason, at: isoTime(rejected.at) },
      items: inParts(rules, RULES_PER_PART),
    });
  }

  statistics(): AsyncIterable<readonly (readonly [string, number])[]> {
    return inParts(this.#options.statistics.entries(), STATISTICS_PER_PART);
  }

  health(): Promise<Health> {
    return Promise.resolve(this.#options.health());
  }

  settings(): Promise<readonly ListedSetting[]> {
    return Promise.resolve(this.#options.settings);
  }
}

function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
