import { type Problem, folderProblem } from '../../rules/files/problems/problem';
import type { Named, Ruleset } from '../../rules/ruleset';
import { DECISION_TIMEOUT, INSTANCES, type InstanceFields, type Settings } from '../../settings/settings';
import { type StoreAbilities, type StoreSettings, storeAbilities } from '../../settings/stores';
import { counted } from '../../text/counted';
import { excerpt } from '../../text/excerpt';

/** The longest name of a rule in a warning, in characters. */
const LONGEST_NAME = 60;

/** The settings of the times that calls wait for the store. */
type TimeSettings = Pick<
  Settings,
  'storeFailurePolicy' | 'storeDecisionTimeout' | 'kvstorePersecond' | InstanceFields['timeout' | 'pipelineWindow']
>;

/** The settings that keep fields of rules from having an effect. */
export type EffectSettings = TimeSettings &
  StoreSettings &
  Pick<Settings, 'leases' | 'stopCacheKeyIncrementWhenOverlimit'>;

/** What of these rules has no effect with these settings: one sentence each. */
export function ineffectiveRules(ruleset: Ruleset, settings: EffectSettings): readonly string[] {
  const can = storeAbilities(settings);
  const isLocal = settings.storeFailurePolicy === 'local' && can.isShared && can.algorithms === true;
  const notLocal = isLocal ? notLocalWarning(ruleset) : undefined;
  const notLeased = settings.leases === 'off' ? undefined : notLeasedWarning(ruleset, can, settings);
  const times = can.hasTimeout ? timesWarning(ruleset, settings) : undefined;
  return [notLocal, notLeased, times].filter((warning) => warning !== undefined);
}

/** The first rule that needs what the store cannot do, for which all are rejected; undefined: there is none. */
export function beyondStore(
  { withScripts: rule }: Ruleset,
  { algorithms: reason }: StoreAbilities,
): Problem | undefined {
  if (rule === undefined || reason === true) return undefined;
  const { file = '', line = 0, column = 0 } = rule.place ?? {};
  const limit = rule.limits.find(({ algorithm }) => algorithm !== undefined);
  const other = rule.options.allOrNothing ? 'all_or_nothing' : 'block_for';
  const ofLimit = limit?.algorithm === 'max_concurrent' ? limit.algorithm : `the algorithm ${limit?.algorithm}`;
  const message = `${limit === undefined ? other : ofLimit} cannot be used: ${reason}`;
  return { ...folderProblem(file, { code: 'store-without-scripts', message }), line, column };
}

/** Which rules STORE_FAILURE_POLICY=local does not cover; undefined: it covers all. */
export function notLocalWarning({ notLocal }: Ruleset): string | undefined {
  if (notLocal.count === 0) return undefined;
  return (
    'STORE_FAILURE_POLICY=local does not cover limits with an algorithm, all_or_nothing, block_for or ' +
    `max_concurrent: without the store, calls for ${listOf(notLocal)} fail, ` +
    'unless on_store_failure of the rule is allow or deny'
  );
}

/** Why `lease: true` has no effect; undefined: it has, or no rule has it, or counts in memory make it needless. */
export function notLeasedWarning(
  { leased }: Ruleset,
  can: StoreAbilities,
  { stopCacheKeyIncrementWhenOverlimit: isExact }: Pick<EffectSettings, 'stopCacheKeyIncrementWhenOverlimit'>,
): string | undefined {
  if (leased.count === 0 || (can.leases === true && !isExact)) return undefined;
  const reason = isExact ? 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT needs the exact count of each call' : can.leases;
  return `\`lease\` of ${listOf(leased)} has no effect: ${reason}`;
}

/** Why the times that calls wait for Redis and the policies of these rules do not fit together; undefined: they do. */
export function timesWarning({ hasPolicies }: Ruleset, settings: TimeSettings): string | undefined {
  const { storeFailurePolicy, storeDecisionTimeout: given, kvstorePersecond } = settings;
  if (storeFailurePolicy === 'error' && !hasPolicies) {
    if (given === undefined) return undefined;
    return (
      'STORE_DECISION_TIMEOUT only makes calls fail earlier, because no policy answers them: ' +
      'STORE_FAILURE_POLICY is error, and no rule has another on_store_failure'
    );
  }
  const wait = given ?? DECISION_TIMEOUT;
  const answered = `the ${wait} ms after which policies answer calls`;
  for (const [prefix, { timeout, pipelineWindow }] of [
    ['KVSTORE', INSTANCES.main] as const,
    ...(kvstorePersecond ? [['KVSTORE_PERSECOND', INSTANCES.perSecond] as const] : []),
  ]) {
    if (settings[pipelineWindow] >= wait) {
      return `${prefix}_PIPELINE_WINDOW is not shorter than ${answered}, so that the store decides none of them`;
    }
    if (settings[timeout] > 0 && settings[timeout] < wait) {
      return (
        `${prefix}_TIMEOUT is shorter than ${answered}: each call that waits so long costs a ` +
        'connection; set STORE_DECISION_TIMEOUT below it'
      );
    }
  }
  return undefined;
}

function listOf({ count, names }: Named): string {
  const list = names.map((name) => excerpt(name, LONGEST_NAME)).join(', ');
  return `${counted(count, 'rule')} (${list}${count > names.length ? ', …' : ''})`;
}
