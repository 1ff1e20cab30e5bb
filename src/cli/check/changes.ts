import type { ListedLimit, ListedRule } from '../../operators/answers';
import { listed } from '../../operators/rules';
import { differentRules } from '../../rules/compare-rulesets';
import type { RulePlace } from '../../rules/rule-config';
import type { Rule } from '../../rules/rule-tree';
import type { Ruleset } from '../../rules/ruleset';
import { Statistics } from '../../statistics/statistics';
import { counted } from '../../text/counted';
import { formatLimit, placeOf } from '../explanation';

/** What is different about a rule. */
export interface RuleChange {
  readonly change: 'added' | 'removed' | 'changed';
  readonly rule: string;
  /** Of one that is removed, in the old rules. */
  readonly place: RulePlace | null;
  /** By the names of rule files; of a rule that is added or removed, what it has. */
  readonly fields: readonly { readonly field: string; readonly before: string | null; readonly after: string | null }[];
}

const NO_STATISTICS = new Statistics(0);

/** What changes between two rulesets, by the names of the rules. */
export function rulesetChanges(before: Ruleset, after: Ruleset): readonly RuleChange[] {
  const changes: RuleChange[] = [];
  for (const difference of differentRules(before, after))
    if (difference !== undefined) changes.push(changeOf(difference));
  return changes.toSorted((one, other) => (one.rule < other.rule ? -1 : 1));
}

function changeOf({
  before,
  after,
}: {
  readonly before: Rule | undefined;
  readonly after: Rule | undefined;
}): RuleChange {
  const [old, now] = [before && listed(before, NO_STATISTICS), after && listed(after, NO_STATISTICS)];
  const { statisticsKey: rule, place } = (now ?? old)!;
  const [oldFields, fields] = [old && fieldsOf(old), now && fieldsOf(now)];
  const names = [...new Set([...(oldFields?.keys() ?? []), ...(fields?.keys() ?? [])])];
  const change = old === undefined ? 'added' : now === undefined ? 'removed' : 'changed';
  const all = names.map((field) => ({
    field,
    before: oldFields?.get(field) ?? null,
    after: fields?.get(field) ?? null,
  }));
  return { change, rule, place, fields: all.filter((each) => each.before !== each.after) };
}

/** What a listed rule has besides fields of its own. */
const NO_FIELDS = new Set(['key', 'value', 'place', 'limit', 'limits', 'totals', 'statisticsKey']);

/** What is set of a rule, by the names of rule files. */
function fieldsOf(rule: Omit<ListedRule, 'depth'>): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  const { limit, limits } = rule;
  if (limits !== null) fields.set('rate_limits', limits.map(limitText).join('; '));
  else if (limit !== null) fields.set('rate_limit', limitText(limit));
  for (const [name, set] of Object.entries(rule)) {
    if (NO_FIELDS.has(name) || set === null || set === false) continue;
    fields.set(
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      JSON.stringify(set),
    );
  }
  return fields;
}

function limitText(limit: ListedLimit): string {
  const { replaces } = limit;
  return [formatLimit(limit), ...(replaces.length > 0 ? [`replaces ${replaces.join(', ')}`] : [])].join(', ');
}

/** The changes, one rule after the other, and their numbers. */
export function formatChanges(changes: readonly RuleChange[]): string {
  const lines = changes.flatMap(({ change, rule, place, fields }) => [
    `${change} ${rule} (${placeOf(place)})`,
    ...fields.map((field) => `  ${fieldText(change, field)}`),
  ]);
  return [...lines, totalsOf(changes)].join('\n');
}

/** The same in Markdown, for a comment on a pull request. @param replayed the report of a replay as text */
export function formatChangesAsMarkdown(changes: readonly RuleChange[], replayed: string | undefined): string {
  const lines = changes.flatMap(({ change, rule, place, fields }) => [
    `- **${change}** \`${rule}\` (${placeOf(place)})`,
    ...fields.map((field) => `  - ${fieldText(change, field)}`),
  ]);
  const report =
    replayed === undefined ? [] : ['', '### Calls that are decided differently', '', '```text', replayed, '```'];
  return [`### Rules: ${totalsOf(changes)}`, '', ...lines, ...report].join('\n');
}

function fieldText(change: RuleChange['change'], { field, before, after }: RuleChange['fields'][number]): string {
  return change === 'changed' ? `${field}: ${before ?? 'none'} → ${after ?? 'none'}` : `${field}: ${before ?? after}`;
}

function totalsOf(changes: readonly RuleChange[]): string {
  const numbers = (['added', 'removed', 'changed'] as const).map((kind) => {
    return `${counted(changes.filter(({ change }) => change === kind).length, 'rule')} ${kind}`;
  });
  return numbers.join(', ');
}
