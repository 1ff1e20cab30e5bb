import { Fragment } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { LimitOfCounter } from '../src/explain/explanation';
import type { NestedRule, RulesAnswer } from '../src/operators/answers';
import { useAnswer } from './api';
import { ConfigurationChanges, RejectedConfiguration } from './configurations';
import { live } from './live-events';
import { Answered, Field, LongList } from './parts';
import { RuleChart } from './rule-chart';
import { addressOf, replaceParameters, route } from './route';
import { useStore } from './store';
import { Text, Time, count, effectText, measure, placeText } from './text';

/** A line of the list: a domain, or a rule. */
interface Row {
  readonly domain: string;
  readonly rule: NestedRule | undefined;
  readonly depth: number;
  /** What a search is compared with, in lower case. */
  readonly searched: string;
  readonly parent: Row | undefined;
}

/**
 * Milliseconds between two looks at the totals, and for each rule more: a thousand rules take the service some
 * milliseconds.
 */
const [LOOK_INTERVAL, LOOK_INTERVAL_OF_RULE] = [5_000, 5];

const VIEWS = [
  ['', 'Active'],
  ['rejected', 'Rejected'],
  ['changes', 'Changes'],
] as const;

export function RulesPage() {
  const { parameters } = useStore(route);
  const view = parameters.get('view') ?? '';
  return (
    <>
      <nav class="views" aria-label="Configurations">
        {VIEWS.map(([name, title]) => (
          <a key={name} href={addressOf('rules', { view: name })} aria-current={name === view ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      {view === 'rejected' ? (
        <RejectedConfiguration />
      ) : view === 'changes' ? (
        <ConfigurationChanges />
      ) : (
        <ActiveRules />
      )}
    </>
  );
}

function ActiveRules() {
  const { parameters } = useStore(route);
  const loadedAt = useStore(live).event?.loaded?.at;
  const [looks, setLooks] = useState(0);
  const answer = useAnswer<RulesAnswer>('rules', `${loadedAt} ${looks}`);
  const rules = answer.value?.loaded?.rules;
  useEffect(() => {
    if (rules === undefined) return undefined;
    const timer = setInterval(
      () => document.hidden || setLooks((before) => before + 1),
      LOOK_INTERVAL + rules * LOOK_INTERVAL_OF_RULE,
    );
    return () => clearInterval(timer);
  }, [rules]);
  const search = parameters.get('q') ?? '';
  const rows = useMemo(() => rowsOf(answer.value), [answer.value]);
  const found = useMemo(() => matching(rows, search.toLowerCase()), [rows, search]);
  const rates = useRates(answer.value, rows);
  const key = parameters.get('rule');
  const chosen = key === null ? -1 : found.findIndex((row) => keyOf(row) === key);
  return (
    <Answered
      answer={answer}
      show={({ loaded }) => (
        <>
          <p class="hint">
            {loaded === null ? (
              'No rules are loaded yet: correct the rule files, and see what was rejected.'
            ) : (
              <>
                {count(loaded.rules)} rules from <Text text={loaded.source} />, loaded <Time iso={loaded.at} />
              </>
            )}
          </p>
          <Field
            label="Search by key, value or name"
            type="search"
            value={search}
            onText={(q) => replaceParameters({ q, rule: undefined })}
          />{' '}
          <span role="status">{count(found.filter(({ rule }) => rule !== undefined).length)} shown</span>
          {found.length === 0 && search !== '' && <p class="notice">No rule has this key, value or name.</p>}
          <div class="split">
            <LongList
              label="Rules"
              count={found.length}
              chosen={chosen}
              onChoose={(index) => replaceParameters({ rule: keyOf(found[index]!) })}
              render={(index) => <RuleRow row={found[index]!} rate={rates.get(keyOf(found[index]!))} />}
            />
            {chosen >= 0 && <Details row={found[chosen]!} />}
          </div>
        </>
      )}
    />
  );
}

function rowsOf(answer: RulesAnswer | undefined): readonly Row[] {
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

/** The rows in which a text is, and those that they are nested in. */
function matching(rows: readonly Row[], text: string): readonly Row[] {
  if (text === '') return rows;
  const kept = new Set<Row>();
  for (const row of rows) {
    if (!row.searched.includes(text)) continue;
    for (let each: Row | undefined = row; each !== undefined && !kept.has(each); each = each.parent) kept.add(each);
  }
  return rows.filter((row) => kept.has(row));
}

function keyOf({ domain, rule }: Row): string {
  return rule?.statisticsKey ?? domain;
}

/** Hits per second between the last two answers, by the key of the rule. */
function useRates(answer: RulesAnswer | undefined, rows: readonly Row[]): ReadonlyMap<string, number> {
  const last = useRef<{ answer: unknown; at: number; hits: Map<string, number>; rates: Map<string, number> }>(null);
  if (answer !== undefined && last.current?.answer !== answer) {
    const at = performance.now();
    const hits = new Map(rows.map((row) => [keyOf(row), row.rule?.totals?.hits ?? 0]));
    const before = last.current;
    const rates = new Map<string, number>();
    for (const [key, value] of before === null ? [] : hits) {
      const grown = value - (before!.hits.get(key) ?? value);
      if (grown >= 0) rates.set(key, (grown * 1000) / (at - before!.at));
    }
    last.current = { answer, at, hits, rates };
  }
  return last.current?.rates ?? new Map();
}

function RuleRow({ row: { domain, rule, depth }, rate }: { readonly row: Row; readonly rate: number | undefined }) {
  if (rule === undefined) {
    return (
      <div class="rule">
        <b>
          <Text text={domain} />
        </b>
      </div>
    );
  }
  const { key, value, place, totals } = rule;
  return (
    <>
      <div class="rule" style={{ paddingInlineStart: `${Math.min(depth, 8)}em` }}>
        <div>
          <Text text={key} />
          {value !== '' && (
            <>
              {' = '}
              <Text text={value} />
            </>
          )}
          <Flags rule={rule} />
        </div>
        <div class="hint">
          {effectText(rule)}
          {place !== null && (
            <>
              {' · '}
              <Text text={placeText(place)} />
            </>
          )}
        </div>
      </div>
      {totals !== null && (
        <div class="number">
          <div>{count(totals.hits)} hits</div>
          <div class="hint wide">
            {count(totals.over)} over · {rate === undefined ? 'no rate yet' : `${measure(rate)} hits/s`}
          </div>
        </div>
      )}
    </>
  );
}

function Flags({ rule }: { readonly rule: NestedRule }) {
  const { enforcePercent } = rule;
  const enforced = enforcePercent !== null && `enforced for ${enforcePercent} %`;
  const flags = [
    rule.shadowMode && 'shadow mode',
    enforced,
    rule.allOrNothing && 'all or nothing',
    rule.quotaMode && 'quota mode',
    rule.shareThreshold && 'shared',
    rule.addressPrefix !== null && `by network /${rule.addressPrefix.ipv4}, /${rule.addressPrefix.ipv6}`,
  ];
  const shown = flags.filter((flag) => flag !== false);
  return <>{shown.length > 0 && <span class="flag">{shown.join(', ')}</span>}</>;
}

function Details({ row: { domain, rule, parent } }: { readonly row: Row }) {
  if (rule === undefined) return <></>;
  const descriptor = [...ancestors(parent), rule].map(({ key, value }) => `${key}=${value || 'x'}`).join(',');
  const { limit, totals, place } = rule;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Domain', domain],
    ['Key', rule.key],
    ['Value', rule.value || 'any'],
    ['Limit', effectText(rule)],
    ['Name', limit?.name],
    ['Replaces', limit?.replaces.join(', ')],
    ['File', placeText(place)],
    ['Statistics key', rule.statisticsKey],
    ['When the store fails', rule.onStoreFailure ?? undefined],
    ['Metadata', rule.metadata === null ? undefined : JSON.stringify(rule.metadata)],
    ['Within the limit', totals === null ? undefined : count(totals.within)],
    ['Near the limit', totals === null ? undefined : count(totals.near)],
    ['Over the limit', totals === null ? undefined : count(totals.over)],
    ['Over, from the local cache', totals === null ? undefined : count(totals.overByLocalCache)],
    ['Allowed by shadow mode', totals === null ? undefined : count(totals.shadow)],
  ];
  return (
    <aside aria-label="The chosen rule">
      <RuleChart statisticsKey={rule.statisticsKey} limits={(rule.limits ?? []) as readonly LimitOfCounter[]} />
      <dl class="facts">
        {facts.map(
          ([name, value]) =>
            value !== undefined &&
            value !== '' && (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd>
                  <Text text={value} />
                </dd>
              </Fragment>
            ),
        )}
      </dl>
      <p class="fields">
        <a href={addressOf('explain', { domain, descriptor })}>Explain a request</a>
        <a href={addressOf('counters', { domain, descriptor })}>Look up a counter</a>
        <a href={addressOf('callers', { q: rule.statisticsKey })}>Callers that it limits</a>
      </p>
    </aside>
  );
}

function ancestors(row: Row | undefined): readonly NestedRule[] {
  return row?.rule === undefined ? [] : [...ancestors(row.parent), row.rule];
}
