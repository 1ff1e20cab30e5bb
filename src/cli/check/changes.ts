import type { ListedLimit } from '../../explain/explanation';
import type { ListedRule } from '../../operators/answers';
import { listed } from '../../operators/rules';
import { type RuleDifference, differentRules } from '../../rules/compare-rulesets';
import { type RulePlace, nameInFiles } from '../../rules/rule-config';
import type { Ruleset } from '../../rules/ruleset';
import { Statistics } from '../../statistics/statistics';
import { counted } from '../../text/counted';
import { visibleLine, visibleLines } from '../../text/visible';
import { formatLimit, placeOf } from '../../explain/text';

/** What is different about a rule. */
export interface RuleChange {
  readonly change: 'added' | 'removed' | 'changed';
  readonly rule: string;
  /** Where the rule is; one that is removed, in the old rules. */
  readonly place: RulePlace | null;
  /** By the names of rule files; of a rule that is added or removed, what it has. */
  readonly fields: readonly { readonly field: string; readonly before: string | null; readonly after: string | null }[];
}

const NO_STATISTICS = new Statistics(0);

/** What changes between two rulesets, by the names of the rules. */
export function rulesetChanges(before: Ruleset, after: Ruleset): readonly RuleChange[] {
  const changes: RuleChange[] = [];
  for (const difference of differentRules(before, after)) {
    if (difference !== undefined) changes.push(changeOf(difference));
  }
  return changes.toSorted((one, other) => (one.rule < other.rule ? -1 : 1));
}

function changeOf({ before, after }: RuleDifference): RuleChange {
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
    fields.set(nameInFiles(name), JSON.stringify(set));
  }
  return fields;
}

function limitText(limit: ListedLimit): string {
  const { replaces } = limit;
  // What it is at this hour is no change.
  return [
    formatLimit({ ...limit, activity: null }),
    ...(replaces.length > 0 ? [`replaces ${replaces.join(', ')}`] : []),
  ].join(', ');
}

/** The changes, one rule after the other, and their numbers. */
export function formatChanges(changes: readonly RuleChange[]): string {
  const lines = changes.flatMap(({ change, rule, place, fields }) => [
    `${change} ${rule} (${placeOf(place)})`,
    ...fields.map((field) => `  ${fieldText(change, field)}`),
  ]);
  return visibleLines([...lines, totalsOf(changes)]);
}

/** The changes in Markdown, for a comment on a pull request. @param replayed the report of a replay as text */
export function formatChangesAsMarkdown(changes: readonly RuleChange[], replayed: string | undefined): string {
  const lines = changes.flatMap(({ change, rule, place, fields }) => [
    `- **${change}** ${code(rule)} (${code(placeOf(place))})`,
    ...fields.map((field) => `  - ${fieldText(change, field, code)}`),
  ]);
  const fence = fenceOf(replayed ?? '', 3);
  const report =
    replayed === undefined ? [] : ['', '### Calls that are decided differently', '', `${fence}text`, replayed, fence];
  return [`### Rules: ${totalsOf(changes)}`, '', ...lines, ...report].join('\n');
}

/** Backticks for Markdown, more than a text has in a row, so that it cannot end what they enclose. */
function fenceOf(text: string, least: number): string {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return '`'.repeat(Math.max(least, longest + 1));
}

/** A text as code of Markdown, in which it makes no heading, link or mention. */
function code(text: string): string {
  const line = visibleLine(text);
  const fence = fenceOf(line, 1);
  // Markdown removes one blank on either side, so that the text may begin and end with a backtick.
  return fence === '`' ? `\`${line}\`` : `${fence} ${line} ${fence}`;
}

function fieldText(
  change: RuleChange['change'],
  { field, before, after }: RuleChange['fields'][number],
  shown: (value: string) => string = String,
): string {
  const [old, now] = [before, after].map((value) => (value === null ? 'none' : shown(value)));
  return `${field}: ${change === 'changed' ? `${old} → ${now}` : before === null ? now : old}`;
}

function totalsOf(changes: readonly RuleChange[]): string {
  const numbers = (['added', 'removed', 'changed'] as const).map((kind) => {
    return `${counted(changes.filter(({ change }) => change === kind).length, 'rule')} ${kind}`;
  });
  return numbers.join(', ');
}
