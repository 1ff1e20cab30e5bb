import { mergingOffenders, shownOffender } from '../../limiter/offender';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { mapRates } from '../history/growth';
import type { Fleet, FleetAspect, FleetDifference, InstanceReport, LiveRule } from '../live-answers';

/** How many rules and callers are listed, of all instances and in the report of one. */
export const LISTED_RULES = 20;
export const LISTED_OFFENDERS = 50;
/** How many settings of an instance and of all are compared, and how many differences of them are listed. */
export const MOST_SETTINGS = 256;
const [ALL_SETTINGS, LISTED_SETTINGS] = [1_024, 200];
/** Most characters of each text of a report, except where a field has a bound of its own. */
export const LONGEST_REPORTED = 260;
/** Steps of a comparison, each of one instance or of one setting, from one turn of the event loop to the next. */
const STEPS = 4;

/** Reports that are numbers of one service, as one. The event loop turns after every few of them. */
export async function mergeReports(
  reports: readonly InstanceReport[],
): Promise<Pick<Fleet, 'rates' | 'latency' | 'rules'> & { readonly offenders: NonNullable<Fleet['offenders']> }> {
  const rates = reports.flatMap((report) => report.rates ?? []);
  const latencies = reports.flatMap(({ latency }) => latency ?? []);
  const [first, ...others] = rates;
  const hits = mergeRules(
    reports.flatMap(({ rules }) => rules.hits),
    'hits',
  );
  await nextTurn();
  const denials = mergeRules(
    reports.flatMap(({ rules }) => rules.denials),
    'over',
  );
  const callers = await inTurns(
    mergingOffenders(
      reports.map(({ offenders }) => offenders),
      LISTED_OFFENDERS,
    ),
  );
  return {
    rates:
      first === undefined
        ? null
        : mapRates(first, (value, name) => others.reduce((sum, each) => sum + each[name], value)),
    latency: latencies.reduce<Fleet['latency']>(
      (slowest, each) => (each.p99 > (slowest?.p99 ?? -1) ? each : slowest),
      null,
    ),
    rules: { hits, denials },
    offenders: callers.offenders.map((each) => shownOffender(each, Date.now() / 1000)),
  };
}

/** What steps return in the end. The event loop turns after each. */
async function inTurns<Result>(steps: Generator<undefined, Result>): Promise<Result> {
  for (;;) {
    await nextTurn();
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

function mergeRules(rules: readonly LiveRule[], by: 'hits' | 'over'): readonly LiveRule[] {
  const merged = new Map<string, LiveRule>();
  for (const rule of rules) {
    const { statisticsKey } = rule;
    const known = merged.get(statisticsKey) ?? { hits: 0, over: 0, shadow: 0, calls: 0 };
    merged.set(statisticsKey, {
      statisticsKey,
      hits: known.hits + rule.hits,
      over: known.over + rule.over,
      shadow: known.shadow + rule.shadow,
      calls: known.calls + rule.calls,
    });
  }
  return [...merged.values()].sort((one, other) => other[by] - one[by]).slice(0, LISTED_RULES);
}

/** What should be the same in all instances. */
export type Compared = Pick<InstanceReport, 'name' | 'version' | 'loaded' | 'settings'>;

export interface Differences {
  readonly differences: readonly FleetDifference[];
  readonly omittedDifferences: number;
  /** In what each of the instances differs from most. */
  readonly differs: readonly (readonly FleetAspect[])[];
}

/** The numbers of the instances by what they have; null: they have none. */
type Values = Map<string | null, number[]>;

/**
 * What differs between instances. The event loop turns after every few of them.
 *
 * @param labels by which each instance is listed
 * @param expected the settings that may differ
 */
export async function differencesOf(
  instances: readonly Compared[],
  labels: readonly string[],
  expected: ReadonlySet<string>,
): Promise<Differences> {
  const [rules, versions]: [Values, Values] = [new Map(), new Map()];
  /** By the names of settings: the first value of each, how many have it, and how many have any. */
  const settings = new Map<string, { readonly value: string; alike: number; setBy: number }>();
  for (const [index, { loaded, version, settings: own }] of instances.entries()) {
    add(rules, loaded && contentOf(loaded.version), index);
    add(versions, version, index);
    for (const name of Object.keys(own)) {
      const value = own[name]!;
      const known = settings.get(name);
      if (known === undefined) {
        if (settings.size < ALL_SETTINGS) settings.set(name, { value, alike: 1, setBy: 1 });
      } else {
        known.setBy += 1;
        if (known.value === value) known.alike += 1;
      }
    }
    if (index % STEPS === 0) await nextTurn();
  }
  const differing = [...settings].filter(([, { alike }]) => alike < instances.length);
  differing.sort(
    ([one, { setBy }], [other, of]) =>
      Number(expected.has(one)) - Number(expected.has(other)) || of.setBy - setBy || (one < other ? -1 : 1),
  );
  const differences: FleetDifference[] = [];
  const differs = instances.map(() => new Set<FleetAspect>());
  function list(aspect: FleetAspect, name: string, found: Values): void {
    const values = [...found].sort(([, one], [, other]) => other.length - one.length);
    const isExpected = expected.has(name);
    const odd = isExpected ? [] : values.slice(1).flatMap(([, others]) => others);
    for (const index of odd) differs[index]!.add(aspect);
    differences.push({
      ...{ aspect, name, isExpected, isHidden: false },
      values: values.map(([value, of]) => ({ value, instances: of.map((index) => labels[index]!) })),
    });
  }
  if (rules.size > 1) list('rules', '', rules);
  if (versions.size > 1) list('version', '', versions);
  for (const [index, [name]] of differing.slice(0, LISTED_SETTINGS).entries()) {
    const values: Values = new Map();
    for (const [each, { settings: own }] of instances.entries()) add(values, own[name] ?? null, each);
    list('settings', name, values);
    if (index % STEPS === 0) await nextTurn();
  }
  return {
    differences,
    omittedDifferences: Math.max(0, differing.length - LISTED_SETTINGS),
    differs: differs.map((aspects) => [...aspects]),
  };
}

function add(values: Values, value: string | null, instance: number): void {
  const others = values.get(value);
  if (others === undefined) values.set(value, [instance]);
  else others.push(instance);
}

/** Equal for the same rules in another folder: the version of files ends with a digest of them. */
function contentOf(version: string): string {
  return /@([\da-f]{12})$/.exec(version)?.[1] ?? version;
}
