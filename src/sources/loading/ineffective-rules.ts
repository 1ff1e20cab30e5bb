import type { Named, Ruleset } from '../../rules/ruleset';
import type { Settings } from '../../settings/settings';
import { counted } from '../../text/counted';
import { excerpt } from '../../text/excerpt';

/** The longest name of a rule in a warning, in characters. */
const LONGEST_NAME = 60;

/** The settings that keep fields of rules from having an effect. */
export type EffectSettings = Pick<
  Settings,
  'storeFailurePolicy' | 'backendType' | 'leases' | 'stopCacheKeyIncrementWhenOverlimit'
>;

/** What of these rules has no effect with these settings: one sentence each. */
export function ineffectiveRules(ruleset: Ruleset, settings: EffectSettings): readonly string[] {
  // Counters in memory do not fail, and memcached has no such rules.
  const isLocal = settings.storeFailurePolicy === 'local' && settings.backendType === 'kvstore';
  const notLocal = isLocal ? notLocalWarning(ruleset) : undefined;
  const notLeased = settings.leases === 'off' ? undefined : notLeasedWarning(ruleset, settings);
  return [notLocal, notLeased].filter((warning) => warning !== undefined);
}

/** Which rules STORE_FAILURE_POLICY=local does not cover; undefined: it covers all. */
export function notLocalWarning({ notLocal }: Ruleset): string | undefined {
  if (notLocal.count === 0) return undefined;
  return (
    `STORE_FAILURE_POLICY=local does not cover limits with an algorithm or all_or_nothing: without the store, calls for ` +
    `${listOf(notLocal)} fail, unless on_store_failure of the rule is allow or deny`
  );
}

/** Why `lease: true` has no effect; undefined: it has, or no rule has it, or counts in memory make it needless. */
export function notLeasedWarning(
  { leased }: Ruleset,
  settings: Pick<EffectSettings, 'backendType' | 'stopCacheKeyIncrementWhenOverlimit'>,
): string | undefined {
  const isExact = settings.stopCacheKeyIncrementWhenOverlimit;
  if (leased.count === 0 || (settings.backendType !== 'plaincache' && !isExact)) return undefined;
  const reason = isExact
    ? 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT needs the exact count of each call'
    : 'memcached has no scripts, without which hits cannot be taken up to a limit';
  return `\`lease\` of ${listOf(leased)} has no effect: ${reason}`;
}

function listOf({ count, names }: Named): string {
  const list = names.map((name) => excerpt(name, LONGEST_NAME)).join(', ');
  return `${counted(count, 'rule')} (${list}${count > names.length ? ', …' : ''})`;
}
