import { mergeOffenders, topOf } from '../limiter/offender';
import { mapRates } from './growth';
import type { Fleet, FleetDifference, InstanceReport, LiveRule } from './live-answers';

/** How many rules and callers are listed, of all instances and in the report of one. */
export const LISTED_RULES = 20;
export const LISTED_OFFENDERS = 50;

/** Reports that are numbers of one service, as one. */
export function mergeReports(reports: readonly InstanceReport[]): Pick<Fleet, 'rates' | 'latency' | 'rules'> & {
  readonly offenders: NonNullable<Fleet['offenders']>;
} {
  const rates = reports.flatMap((report) => report.rates ?? []);
  const latencies = reports.flatMap(({ latency }) => latency ?? []);
  const [first, ...others] = rates;
  return {
    rates:
      first === undefined
        ? null
        : mapRates(first, (value, name) => others.reduce((sum, each) => sum + each[name], value)),
    latency: latencies.reduce<Fleet['latency']>(
      (slowest, each) => (each.p99 > (slowest?.p99 ?? -1) ? each : slowest),
      null,
    ),
    rules: {
      hits: mergeRules(
        reports.flatMap(({ rules }) => rules.hits),
        'hits',
      ),
      denials: mergeRules(
        reports.flatMap(({ rules }) => rules.denials),
        'over',
      ),
    },
    offenders: topOf(
      mergeOffenders(
        reports.map(({ offenders }) => offenders),
        LISTED_OFFENDERS,
      ),
      { limit: LISTED_OFFENDERS },
    ),
  };
}

function mergeRules(rules: readonly LiveRule[], by: 'hits' | 'over'): readonly LiveRule[] {
  const merged = new Map<string, LiveRule>();
  for (const { statisticsKey, hits, over } of rules) {
    const known = merged.get(statisticsKey) ?? { statisticsKey, hits: 0, over: 0 };
    merged.set(statisticsKey, { statisticsKey, hits: known.hits + hits, over: known.over + over });
  }
  return [...merged.values()].sort((one, other) => other[by] - one[by]).slice(0, LISTED_RULES);
}

/** What should be the same in all instances. */
export type Compared = Pick<InstanceReport, 'name' | 'version' | 'loaded' | 'settings'>;

/** What differs between instances, by the name of each. */
export function differencesOf(reports: ReadonlyMap<string, Compared>): readonly FleetDifference[] {
  const settings = new Set([...reports.values()].flatMap((report) => Object.keys(report.settings)));
  return [
    difference({ aspect: 'rules', name: '' }, reports, ({ loaded }) => loaded && contentOf(loaded.version)),
    difference({ aspect: 'version', name: '' }, reports, ({ version }) => version),
    ...[...settings].sort().map((name) => {
      return difference({ aspect: 'settings', name }, reports, (report) => report.settings[name] ?? null);
    }),
  ].flatMap((found) => found ?? []);
}

/** Equal for the same rules in another folder: the version of files ends with a digest of them. */
function contentOf(version: string): string {
  return /@([\da-f]{12})$/.exec(version)?.[1] ?? version;
}

/** Undefined if there is one value only. */
function difference(
  { aspect, name }: Pick<FleetDifference, 'aspect' | 'name'>,
  reports: ReadonlyMap<string, Compared>,
  read: (report: Compared) => string | null,
): FleetDifference | undefined {
  const instances = new Map<string | null, string[]>();
  for (const [instance, report] of reports) {
    const value = read(report);
    const others = instances.get(value);
    if (others === undefined) instances.set(value, [instance]);
    else others.push(instance);
  }
  if (instances.size < 2) return undefined;
  const values = Array.from(instances, ([value, of]) => ({ value, instances: of }));
  return { aspect, name, values: values.sort((one, other) => other.instances.length - one.instances.length) };
}
