import { useRef } from 'preact/hooks';
import type { NestedRule, RulesAnswer } from '../src/operators/answers';
import { shareOf } from './text';

/** A line of the list: a domain, or a rule. */
export interface Row {
  readonly domain: string;
  readonly rule: NestedRule | undefined;
  readonly depth: number;
  /** What a search is compared with, in lower case. */
  readonly searched: string;
  readonly parent: Row | undefined;
}

/** What is counted for a rule per second. */
export interface Rates {
  readonly hits: number;
  readonly over: number;
}

export function rowsOf(answer: RulesAnswer | undefined): readonly Row[] {
  const rows: Row[] = [];
  function add(domain: string, rule: NestedRule, parent: Row): void {
    const names = [domain, rule.key, rule.value, rule.limit?.name ?? '', rule.statisticsKey];
    const row: Row = { domain, rule, depth: parent.depth + 1, searched: names.join('\n').toLowerCase(), parent };
    rows.push(row);
    for (const nested of rule.descriptors) add(domain, nested, row);
  }
  for (const { domain, descriptors, unmatched } of answer?.domains ?? []) {
    const row: Row = { domain, rule: undefined, depth: 0, searched: domain.toLowerCase(), parent: undefined };
    rows.push(row);
    for (const rule of [...descriptors, ...(unmatched === null ? [] : [unmatched])]) add(domain, rule, row);
  }
  return rows;
}

/** The rows that are looked for, and those that they are nested in. */
export function matching(rows: readonly Row[], isWanted: (row: Row) => boolean): readonly Row[] {
  const kept = new Set<Row>();
  for (const row of rows) {
    if (!isWanted(row)) continue;
    for (let each: Row | undefined = row; each !== undefined && !kept.has(each); each = each.parent) kept.add(each);
  }
  return rows.filter((row) => kept.has(row));
}

export function keyOf({ domain, rule }: Row): string {
  return rule?.statisticsKey ?? domain;
}

/** Whether hits of a rule are limited at present. */
export function isLimiting(rates: Rates | undefined): boolean {
  return (rates?.over ?? 0) > 0;
}

/** The limited share of the hits at present, or else of all since the start. */
export function limitedShareOf({ rule }: Row, rates: Rates | undefined): number | undefined {
  if (rates !== undefined && rates.hits > 0) return shareOf(rates.over, rates.hits);
  return shareOf(overOf(rule), rule?.totals?.hits);
}

/** Hits over the limit, without those of callers for which a rule is not enforced yet. */
function overOf(rule: NestedRule | undefined): number {
  const { over = 0, shadow = 0 } = rule?.totals ?? {};
  return rule?.shadowMode === true ? over : over - shadow;
}

interface Look {
  readonly answer: unknown;
  readonly at: number;
  readonly totals: ReadonlyMap<string, Rates>;
  readonly rates: ReadonlyMap<string, Rates>;
}

/** What is counted between the last two answers, by the key of the rule. */
export function useRates(answer: RulesAnswer | undefined, rows: readonly Row[]): ReadonlyMap<string, Rates> {
  const last = useRef<Look>({ answer: undefined, at: -Infinity, totals: new Map(), rates: new Map() });
  const before = last.current;
  if (answer !== before.answer) {
    const at = performance.now();
    const seconds = (at - before.at) / 1000;
    const totals = new Map<string, Rates>();
    const rates = new Map<string, Rates>();
    for (const row of rows) {
      const [hits, over] = [row.rule?.totals?.hits ?? 0, overOf(row.rule)];
      const [key, old] = [keyOf(row), before.totals.get(keyOf(row))];
      totals.set(key, { hits, over });
      if (old === undefined || hits < old.hits) continue;
      rates.set(key, { hits: (hits - old.hits) / seconds, over: Math.max(0, over - old.over) / seconds });
    }
    last.current = { answer, at, totals, rates };
  }
  return last.current.rates;
}

export function ancestors(row: Row | undefined): readonly NestedRule[] {
  return row?.rule === undefined ? [] : [...ancestors(row.parent), row.rule];
}
