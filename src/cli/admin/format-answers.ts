import type { Offender } from '../../limiter/offender';
import { activeText, activityText, blockText, durationText, rateText } from '../../rules/unit';
import type { CounterChange, CounterState, NestedRule, RulesAnswer } from '../../operators/answers';
import type { HealthPart, ListedHealth } from '../../operators/live-answers';
import { counted } from '../../text/counted';
import { visibleLine, visibleLines } from '../../text/visible';
import { algorithmParts, formatLimit, placeOf } from '../../explain/text';

/** The rules as an indented tree, one line each. */
export function formatRules({ loaded, rejected, domains }: RulesAnswer): string {
  const lines =
    loaded === null
      ? ['no rules are loaded']
      : [`${counted(loaded.rules, 'rule')} from ${loaded.source}, version ${loaded.version}`];
  if (rejected !== null) lines.push(...`the last load was rejected: ${rejected.reason}`.split('\n'));
  for (const { domain, unmatched, descriptors } of domains) {
    lines.push(domain);
    if (unmatched !== null) addRule(unmatched, '  ', lines);
    for (const rule of descriptors) addRule(rule, '  ', lines);
  }
  return visibleLines(lines);
}

function addRule(rule: NestedRule, indent: string, lines: string[]): void {
  const { key, value, limit, totals } = rule;
  const limits = rule.limits ?? (limit === null ? [] : [limit]);
  const parts = [`${key}${value === '' ? '' : `=${value}`}`];
  for (const each of limits) parts.push(formatLimit({ ...rule, ...each }));
  if (rule.allOrNothing) parts.push('all or nothing');
  if (rule.addressPrefix) parts.push(`by network /${rule.addressPrefix.ipv4}, /${rule.addressPrefix.ipv6}`);
  if (totals !== null) parts.push(`${counted(totals.hits, 'hit')}, ${totals.over} over, ${totals.near} near`);
  const place = placeOf(rule.place);
  lines.push(`${indent}${parts.join(', ')}${place === '' ? '' : ` (${place})`}`);
  for (const nested of rule.descriptors) addRule(nested, `${indent}  `, lines);
}

/** A counter, and its count before a change. */
export function formatCounter(counter: CounterState | CounterChange): string {
  const { cacheKey, count, requestsPerUnit, unit, unitMultiplier, windowEnd, timeToLive } = counter;
  const { isInLocalCache, overdrawn, leased, active, activity, block, blockFor } = counter;
  const { count: open = 0, first = [] } = counter.openReservations ?? {};
  const [algorithm, ...burst] = algorithmParts(counter);
  const limit = [`limit ${rateText(requestsPerUnit, unit, unitMultiplier)}`, ...algorithmParts(counter)];
  if (blockFor) limit.push(`blocks for ${blockText(blockFor)}`);
  if (active) limit.push(`active ${activeText(active)}${activity ? activityText(activity) : ''}`);
  return visibleLines([
    ('countBefore' in counter ? `${counter.countBefore} -> ${count}` : String(count)) +
      (burst.length > 0 ? ' tokens left' : ''),
    `  ${limit.join(', ')}`,
    ...(unit === 'UNKNOWN'
      ? []
      : [
          `  ${algorithm === undefined ? 'window ends' : 'no hits count from'} ${windowEnd}` +
            (timeToLive === null ? '' : `, removed in ${timeToLive} s`),
        ]),
    ...(block ? [`  blocked until ${block.until}, for ${durationText(block.seconds)}`] : []),
    `  key ${cacheKey}`,
    ...(overdrawn ? [`  overdrawn by ${counted(overdrawn, 'hit')}`] : []),
    ...(leased ? [`  ${counted(leased, 'hit')} held for later calls`] : []),
    ...(requestsPerUnit === 0 && !counter.burst ? ['  a limit of 0: clearing its counter unblocks nobody'] : []),
    ...(isInLocalCache ? ['  in the local cache, as over the limit'] : []),
    ...(open > 0
      ? [`  ${counted(open, 'open reservation')}${open > first.length ? ', the first of which are' : ''}`]
      : []),
    ...first.map(({ id, hits, expiresAt, onExpiry }) => {
      return `    ${id}: ${counted(hits, 'hit')}, ${onExpiry === 'cancel' ? 'given back' : 'settled'} at ${expiresAt}`;
    }),
  ]);
}

/** What a list of callers that are limited counts, and its columns. */
const OFFENDERS_HEAD = [
  'calls over their limits in the present period and the one before (OFFENDERS_WINDOW)',
  `${'CALLS'.padStart(10)}  CALLER  RULE`,
];

/** A service of an older version has the first members only. */
type ShownOffender = Pick<Offender, 'domain' | 'rule' | 'descriptor' | 'limited' | 'isShadow'> & Partial<Offender>;

export function formatOffenders(offenders: readonly ShownOffender[]): string {
  const lines = offenders.flatMap((offender) => {
    const { domain, rule, descriptor, limited, isShadow, state } = offender;
    const name = rule === '' ? `${domain}: limit of the request` : rule;
    const row = `${String(limited).padStart(10)}  ${descriptor}  ${name}${isShadow ? ' (shadow mode)' : ''}`;
    return state === undefined ? [row] : [row, `${' '.repeat(12)}${stateText(offender)}`];
  });
  return [...OFFENDERS_HEAD, ...lines.map(visibleLine)].join('\n');
}

function stateText({ state, until, since, recent, share, todo }: ShownOffender): string {
  const now = { passes: 'passes now', limited: `limited until ${until}`, never: 'never passes' }[state!];
  const ofRule =
    typeof share === 'number' ? `, ${Number((100 * share).toPrecision(3))} % of the calls of its rule` : '';
  const lately = recent ? `; since ${since}, in the last ten minutes ${recent}${ofRule}` : '';
  return `${now}${lately}${todo ? `; ${todo.text}: ${todo.link}` : ''}`;
}

/** The health, and each part of the service in a line, with what to do about it. */
export function formatHealth({ healthy, unhealthy, degraded, ...parts }: ListedHealth): string {
  const health = healthText({ healthy, unhealthy });
  const lines = [degraded.length === 0 ? health : `${health}; ${degraded.join(', ')}`];
  for (const name of ['store', 'rules', 'process', 'instances'] as const)
    lines.push(`  ${partText(name, parts[name])}`);
  return visibleLines(lines);
}

export function healthText({ healthy, unhealthy }: Pick<ListedHealth, 'healthy' | 'unhealthy'>): string {
  return healthy ? 'healthy' : `unhealthy: ${unhealthy.join(', ')}`;
}

export function partText(name: string, { state, text, todo }: HealthPart): string {
  return `${name}: ${state}, ${text}${todo === null ? '' : ` (${todo.text}: ${todo.link})`}`;
}
