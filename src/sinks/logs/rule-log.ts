import { setImmediate as nextTurn } from 'node:timers/promises';
import { type MonoTypeOperatorFunction, type Observable, connect, filter, ignoreElements, merge, tap } from 'rxjs';
import { type RulesetChanges, compareRulesets } from '../../rules/compare-rulesets';
import { LOGGED_NAMES, type Named, type Ruleset } from '../../rules/ruleset';
import type { Settings } from '../../settings/settings';
import { exhaustMapWithTrailing } from '../../streams/exhaust-map-with-trailing';
import type { Statistics } from '../../statistics/statistics';
import type { Log } from '../../log/log';
import type { RuleEvent, RulesLoaded, RulesRejected } from '../../streams/ports/rule-source';
import { counted } from '../../text/counted';
import { excerpt } from '../../text/excerpt';

type OnCompared = (load: RulesLoaded, changes: RulesetChanges | undefined) => void;

/** How many names operators see of each list of changes. */
const KEPT_NAMES = 5;

/** The longest name in a list of changes, in characters. */
const MAX_NAME = 60;

/**
 * Counts and logs loads as they pass: each rejection, its end, and what each load has changed. Two gauges let an alert
 * detect a service that keeps old rules: `ratelimit.config.loaded_at`, when the active rules were loaded, in Unix
 * seconds (0: no rules yet), and `ratelimit.config.rejected`, 1 while the newest rules are rejected. Loads of files are
 * also counted under the names of the Go service.
 *
 * @param onCompared called with each load and what it has changed, undefined for the first one
 */
export function recordLoads(
  {
    statistics,
    log,
    settings,
  }: {
    readonly statistics: Statistics;
    readonly log: Log;
    readonly settings: Pick<Settings, 'configType'>;
  },
  onCompared: OnCompared = () => undefined,
): MonoTypeOperatorFunction<RuleEvent> {
  const successes = statistics.counter('ratelimit.service.config_load_success');
  const errors = statistics.counter('ratelimit.service.config_load_error');
  let loadedAt = 0;
  let isRejected = false;
  statistics.gauge('ratelimit.config.loaded_at', () => loadedAt);
  statistics.gauge('ratelimit.config.rejected', () => Number(isRejected));
  const countFiles = settings.configType === 'FILE' ? fileLoads(statistics) : () => undefined;

  function rejected({ reason, skipped, isRepeated }: RulesRejected): void {
    isRejected = true;
    errors.add(1);
    if (isRepeated === true) return;
    if (loadedAt > 0) log.error(`new rules rejected; keeping the active rules: ${reason}`, { skipped });
    else log.error(`rules rejected; none are active: ${reason}`, { skipped });
  }
  function loaded({ warnings }: RulesLoaded): void {
    loadedAt = Math.floor(Date.now() / 1000);
    for (const warning of warnings) log.warn(warning);
    if (isRejected) log.notice('the rules are valid again');
  }
  function record(event: RuleEvent): void {
    countFiles(event);
    if (event.kind === 'rejected') return rejected(event);
    if (isNewLoad(event)) loaded(event);
    if (event.isResent !== true) successes.add(1);
    isRejected = false;
  }
  return (events$) =>
    events$.pipe(
      tap(record),
      connect((recorded$) => merge(logChanges(recorded$.pipe(filter(isNewLoad)), log, onCompared), recorded$)),
    );
}

/** @returns what counts a load of rule files, whether it is accepted or not */
function fileLoads(statistics: Statistics): (event: RuleEvent) => void {
  const attempts = statistics.counter('runtime.load_attempts');
  const failures = statistics.counter('runtime.load_failures');
  let files = 0;
  statistics.gauge('runtime.num_values', () => files);
  return (event) => {
    attempts.add(1);
    if (event.kind === 'rejected') failures.add(1);
    else files = event.files ?? 0;
  };
}

function isNewLoad(event: RuleEvent): event is RulesLoaded {
  return event.kind === 'loaded' && event.isResent !== true && event.isRepeated !== true;
}

/**
 * Logs what each load has changed. Of loads that arrive during a comparison only the newest gets a line: it has
 * replaced the others.
 */
function logChanges(loads$: Observable<RulesLoaded>, log: Log, onCompared: OnCompared): Observable<never> {
  /** The rules of the last line; undefined before the first. */
  let logged: Ruleset | undefined;
  return loads$.pipe(
    exhaustMapWithTrailing(async (load) => {
      const { origin, ruleset, skipped } = load;
      const found = logged && (await comparison(logged, ruleset));
      const changes = found && describeChanges(found);
      logged = ruleset;
      onCompared(load, found);
      const fields = { ...origin, domains: ruleset.domains.size, rules: ruleset.size, changes, skipped };
      log[changes === NO_CHANGES ? 'info' : 'notice']('rules loaded', fields);
    }),
    ignoreElements(),
  );
}

/** Compares in steps, one per turn of the event loop, so that decisions continue. */
async function comparison(before: Ruleset, after: Ruleset): Promise<RulesetChanges> {
  const steps = compareRulesets(before, after, KEPT_NAMES);
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
  const short = names.slice(0, LOGGED_NAMES).map((name) => excerpt(name, MAX_NAME));
  const list = [...short, ...(count > short.length ? ['…'] : [])].join(', ');
  return `${counted(count, noun)} ${verb} (${list})`;
}
