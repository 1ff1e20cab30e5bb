import { setImmediate as nextTurn } from 'node:timers/promises';
import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import { type Named, type RulesetChanges, compareRulesets } from '../../rules/compare-rulesets';
import { type Ruleset, notLocalWarning } from '../../rules/ruleset';
import type { Settings } from '../../settings/settings';
import type { Statistics } from '../../statistics/statistics';
import type { Log } from '../../log/log';
import type { RuleEvent, RulesLoaded, RulesRejected } from '../../streams/ports/rule-source';
import { counted } from '../../text/counted';
import { excerpt } from '../../text/excerpt';

/** The longest name in a list of changes, in characters. */
const MAX_NAME = 60;

/**
 * Counts and logs loads as they pass. Two gauges let an alert detect a service that keeps old rules:
 * `ratelimit.config.loaded_at`, when the active rules were loaded, in Unix seconds (0: no rules yet), and
 * `ratelimit.config.rejected`, 1 while the newest rules are rejected.
 */
export function recordLoads({
  statistics,
  log,
  settings: { storeFailurePolicy, backendType },
}: {
  readonly statistics: Statistics;
  readonly log: Log;
  readonly settings: Pick<Settings, 'storeFailurePolicy' | 'backendType'>;
}): MonoTypeOperatorFunction<RuleEvent> {
  const successes = statistics.counter('ratelimit.service.config_load_success');
  const errors = statistics.counter('ratelimit.service.config_load_error');
  const ruleLog = new RuleLog(log);
  let loadedAt = 0;
  let isRejected = false;
  statistics.gauge('ratelimit.config.loaded_at', () => loadedAt);
  statistics.gauge('ratelimit.config.rejected', () => Number(isRejected));
  return tap((event) => {
    isRejected = event.kind === 'rejected';
    if (event.kind === 'rejected') {
      errors.add(1);
      ruleLog.rejected(event, loadedAt > 0);
      return;
    }
    if (event.isResent === true) return;
    successes.add(1);
    if (event.isRepeated === true) return;
    loadedAt = Math.floor(Date.now() / 1000);
    ruleLog.loaded(event);
    // Counters in memory do not fail, and memcached has no such rules.
    const isLocal = storeFailurePolicy === 'local' && backendType === 'kvstore';
    const warning = isLocal ? notLocalWarning(event.ruleset) : undefined;
    if (warning !== undefined) log.warn(warning);
  });
}

/** Logs loads of rules: each rejection, its end, and what each load has changed. */
export class RuleLog {
  readonly #log: Log;
  #isRejected = false;
  /** The rules of the last line; undefined before the first. */
  #logged: Ruleset | undefined;
  /** Loads that have no line yet. Only the newest one gets its own: it has replaced the others. */
  #newest: RulesLoaded | undefined;
  #isComparing = false;

  constructor(log: Log) {
    this.#log = log;
  }

  rejected({ reason, skipped, isRepeated }: RulesRejected, hasRules: boolean): void {
    this.#isRejected = true;
    if (isRepeated === true) return;
    if (hasRules) this.#log.error(`new rules rejected; keeping the active rules: ${reason}`, { skipped });
    else this.#log.error(`rules rejected; none are active: ${reason}`, { skipped });
  }

  loaded(event: RulesLoaded): void {
    for (const warning of event.warnings) this.#log.warn(warning);
    if (this.#isRejected) this.#log.notice('the rules are valid again');
    this.#isRejected = false;
    this.#newest = event;
    if (!this.#isComparing) void this.#logLoads();
  }

  async #logLoads(): Promise<void> {
    this.#isComparing = true;
    for (let event = this.#takeNewest(); event !== undefined; event = this.#takeNewest()) {
      const { origin, ruleset, skipped } = event;
      const changes = this.#logged && describeChanges(await comparison(this.#logged, ruleset));
      this.#logged = ruleset;
      const fields = { ...origin, domains: ruleset.domains.size, rules: ruleset.size, changes, skipped };
      if (changes === NO_CHANGES) this.#log.info('rules loaded', fields);
      else this.#log.notice('rules loaded', fields);
    }
    this.#isComparing = false;
  }

  #takeNewest(): RulesLoaded | undefined {
    const newest = this.#newest;
    this.#newest = undefined;
    return newest;
  }
}

/** Compares in steps, one per turn of the event loop, so that decisions continue. */
async function comparison(before: Ruleset, after: Ruleset): Promise<RulesetChanges> {
  const steps = compareRulesets(before, after);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await nextTurn();
  }
}

const NO_CHANGES = 'none';

/** For example `1 domain added (edge); 2 rules changed (shop.user, shop.plan_free)`. */
function describeChanges(changes: RulesetChanges): string {
  const parts = [
    part('domain', 'added', changes.domainsAdded),
    part('domain', 'removed', changes.domainsRemoved),
    part('rule', 'added', changes.rulesAdded),
    part('rule', 'removed', changes.rulesRemoved),
    part('rule', 'changed', changes.rulesChanged),
  ].filter((text) => text !== '');
  return parts.join('; ') || NO_CHANGES;
}

function part(noun: string, verb: string, { count, names }: Named): string {
  if (count === 0) return '';
  const short = names.map((name) => excerpt(name, MAX_NAME));
  const list = [...short, ...(count > names.length ? ['…'] : [])].join(', ');
  return `${counted(count, noun)} ${verb} (${list})`;
}
