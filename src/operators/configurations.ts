import { isUtf8 } from 'node:buffer';
import type { RuleFile } from '../rules/files/read-rule-files';
import type { RuleEvent } from '../streams/ports/rule-source';
import type { ListedConfiguration, ListedConfigurations } from './answers';
import { isoTime } from '../text/iso-time';

/** With the files as the source has sent them. */
export type Configurations = ListedConfigurations<RuleFile>;
type Configuration = ListedConfiguration<RuleFile>;

/** The last rules that a source has sent: those that are active, those before, and those that were rejected last. */
export class RecentConfigurations {
  #active: Configuration | null = null;
  #previous: Configuration | null = null;
  #rejected: Configurations['rejected'] = null;

  get list(): Configurations {
    return { active: this.#active, previous: this.#previous, rejected: this.#rejected };
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
