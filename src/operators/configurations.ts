import { isUtf8 } from 'node:buffer';
import type { RuleFile } from '../rules/files/read-rule-files';
import type { RulesetChanges } from '../rules/compare-rulesets';
import type { Named } from '../rules/ruleset';
import type { RuleEvent, RulesLoaded } from '../streams/ports/rule-source';
import { shortened } from '../text/excerpt';
import { ownText } from '../text/table-key';
import type { ListedConfiguration, ListedConfigurations, ListedLoad } from './answers';
import { isoTime } from '../text/iso-time';

/** Loads that are kept. */
const LOADS = 50;

/** With the files as the source has sent them. */
export type Configurations = ListedConfigurations<RuleFile>;
type Configuration = ListedConfiguration<RuleFile>;

/** The last rules that a source has sent: those that are active, those before, and those that were rejected last. */
export class RecentConfigurations {
  #active: Configuration | null = null;
  #previous: Configuration | null = null;
  #rejected: Configurations['rejected'] = null;
  readonly #loads: ListedLoad[] = [];

  get list(): Configurations {
    return { active: this.#active, previous: this.#previous, rejected: this.#rejected };
  }

  /** The last loads, the newest at the end; of those that follow each other at once, the last one. */
  get loads(): readonly ListedLoad[] {
    return this.#loads;
  }

  /** @param changes undefined for the first load */
  compared({ origin, ruleset }: Pick<RulesLoaded, 'origin' | 'ruleset'>, changes: RulesetChanges | undefined): void {
    const listed = Object.entries(changes ?? {}).map(([what, { count, names }]: [string, Named]) => {
      return [what, { count, names: names.map((name) => ownText(shortened(name))) }];
    });
    this.#loads.push({
      ...{ at: isoTime(Date.now() / 1000), rules: ruleset.size },
      ...{ source: shortened(origin.source), version: shortened(origin.version) },
      changes: changes === undefined ? null : (Object.fromEntries(listed) as RulesetChanges),
    });
    if (this.#loads.length > LOADS) this.#loads.shift();
  }

  record(event: RuleEvent): void {
    if (event.isRepeated === true) return;
    const at = isoTime(Date.now() / 1000);
    const files = event.raw?.every(({ content }) => isUtf8(content)) ? event.raw : null;
    if (event.kind === 'rejected') {
      const errors = event.report ?? event.reason.split('\n');
      this.#rejected = { at, isNewest: true, reason: event.reason, errors, files };
      return;
    }
    if (event.isResent === true && this.#active !== null) {
      this.#active = { ...this.#active, ...event.origin };
      return;
    }
    if (this.#rejected !== null) this.#rejected = { ...this.#rejected, isNewest: false };
    this.#previous = this.#active;
    this.#active = { ...event.origin, at, rules: event.ruleset.size, files };
  }
}
