import { useMemo } from 'preact/hooks';
import type { History } from '../src/operators/live-answers';
import type { NestedRule, RulesAnswer } from '../src/operators/answers';
import { useAnswer } from './api';
import { Sparkline } from './sparkline';
import { ConfigurationChanges, RejectedConfiguration } from './configurations';
import { useFleet, useHistory } from './fleet-answer';
import { live } from './live-events';
import { LongList } from './long-list';
import { PageBar } from './page-bar';
import { Choice, Search, Share, answered, titleOf } from './parts';
import { addressOf, replaceParameters, useParameter } from './route';
import { RuleDetails } from './rule-details';
import { type Rates, type Row, isLimiting, keyOf, limitedShareOf, matching, rowsOf, useRates } from './rule-rows';
import { useStore } from './store';
import { Time, count, effectText, measure, placeText, shown } from './text';

/**
 * Milliseconds between two looks at the totals, and for each rule more: a thousand rules take the service some
 * milliseconds.
 */
const [LOOK_INTERVAL, LOOK_INTERVAL_OF_RULE] = [5_000, 5];

const COLUMNS = ['Rule', 'Limit', 'Hits/s:', 'Limited share:', 'Trend!', 'File!'].map(titleOf);

export function RulesPage() {
  const { event } = useStore(live);
  const fleet = useFleet();
  const view = useParameter('view');
  const loaded = event?.loaded;
  const views = {
    '': `Active ${loaded ? count(loaded.rules) : ''}`,
    changes: 'Changes',
    rejected: event?.rejected ? 'Rejected' : 'Rejected: none',
  };
  const text = loaded && [
    ...[shown(loaded.version), ' from ', shown(loaded.source), ', loaded ', <Time key="at" iso={loaded.at} />],
    fleet !== undefined && '; numbers of this instance only',
  ];
  return (
    <>
      <PageBar title="Rules" hasRange={view === ''} text={text}>
        <nav class="choice" aria-label="Configurations">
          {Object.entries(views).map(([name, title]) => (
            <a key={name} href={addressOf('rules', { view: name })} aria-current={name === view ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
      </PageBar>
      {view === 'rejected' && <RejectedConfiguration />}
      {view === 'changes' && <ConfigurationChanges />}
      {view !== 'rejected' && view !== 'changes' && event !== undefined && <ActiveRules loaded={event.loaded} />}
    </>
  );
}

function ActiveRules({ loaded }: Pick<RulesAnswer, 'loaded'>) {
  const { value: history } = useHistory();
  const every = LOOK_INTERVAL + (loaded?.rules ?? 0) * LOOK_INTERVAL_OF_RULE;
  const answer = useAnswer<RulesAnswer>('rules', { every, version: loaded?.at });
  const [search, filter, key] = [useParameter('q'), useParameter('show'), useParameter('rule')];
  const rows = useMemo(() => rowsOf(answer.value), [answer.value]);
  const rates = useRates(answer.value, rows);
  const filters: Readonly<Record<string, (row: Row) => boolean>> = {
    limiting: (row) => row.rule?.shadowMode === false && isLimiting(rates.get(keyOf(row))),
    shadow: ({ rule }) => rule?.shadowMode === true,
  };
  const [limiting, shadows] = Object.values(filters).map((isWanted) => rows.filter(isWanted).length);
  const found = useMemo(
    () => matching(rows, (row) => row.searched.includes(search.toLowerCase()) && (filters[filter]?.(row) ?? true)),
    [rows, search, filter],
  );
  const chosen = key === '' ? -1 : found.findIndex((row) => keyOf(row) === key);
  const options = [
    ['', 'All'],
    ['limiting', `Limiting ${count(limiting!)}`],
    ['shadow', `Shadow ${count(shadows!)}`],
  ] as const;
  return answered(answer, () => (
    <div class="grid">
      <section class={`card fill ${chosen >= 0 ? 'c8' : 'c12'}`} aria-label="Active rules">
        <Search
          label="Search by key, value or name"
          value={search}
          found={`${count(found.filter(({ rule }) => rule !== undefined).length)} shown`}
          onText={(q) => replaceParameters({ q, rule: undefined })}
        >
          <Choice
            label="Show"
            options={options}
            value={filter}
            onChoose={(show) => replaceParameters({ show, rule: undefined })}
          />
        </Search>
        {loaded === null && (
          <p class="empty">No rules are loaded yet: correct the rule files, and see what was rejected.</p>
        )}
        {found.length === 0 && loaded !== null && <p class="empty">No rule is like this.</p>}
        <div class="columns" aria-hidden="true">
          {COLUMNS.map(({ kind, content }) => (
            <span class={kind}>{content}</span>
          ))}
        </div>
        <LongList
          label="Rules"
          count={found.length}
          chosen={chosen}
          onChoose={(index) => replaceParameters({ rule: keyOf(found[index]!) })}
          render={(index) => cellsOf(found[index]!, rates.get(keyOf(found[index]!)), history)}
        />
      </section>
      {chosen >= 0 && <RuleDetails row={found[chosen]!} rates={rates.get(keyOf(found[chosen]!))} />}
    </div>
  ));
}

function cellsOf(row: Row, rates: Rates | undefined, history: History | undefined) {
  const { domain, rule, depth } = row;
  if (rule === undefined) return <b class="domain">{shown(domain)}</b>;
  const { key, value, place, totals, shadowMode, statisticsKey } = rule;
  const share = limitedShareOf(row, rates);
  const known = history?.rules.find((each) => each.statisticsKey === statisticsKey);
  const idle = totals === null ? 'idle' : '';
  return (
    <>
      <span class={`cell ${idle}`}>
        {depth > 1 && <span class="faint">{'\u2003'.repeat(Math.min(depth, 6) - 1)}└ </span>}
        <b>{shown(key)}</b>
        {value === '' ? <span class="faint small"> any</span> : [' = ', shown(value)]}
        {flagsOf(rule).map((flag) => flag && <span class="tag">{flag}</span>)}
      </span>
      <span class={`cell limit-of ${idle}`}>{effectText(rule)}</span>
      {totals !== null && (
        <>
          <span class="cell number">{measure(rates?.hits ?? known?.hits.at(-1))}</span>
          <span class="cell number">
            <Share share={share} kind={shadowMode ? 'shadow' : ''} />
          </span>
          <span class="cell wide">
            {known !== undefined && (
              <Sparkline
                history={history!}
                values={known.hits}
                tone={shadowMode ? 'third' : (share ?? 0) > 50 ? 'over' : 'pass'}
              />
            )}
          </span>
        </>
      )}
      <span class="cell wide mono small faint place">{shown(placeText(place))}</span>
    </>
  );
}

function flagsOf({ enforcePercent, addressPrefix, ...rule }: NestedRule): readonly (string | false)[] {
  return [
    rule.shadowMode && 'shadow mode',
    enforcePercent !== null && `enforced for ${enforcePercent} %`,
    rule.allOrNothing && 'all or nothing',
    rule.quotaMode && 'quota mode',
    rule.shareThreshold && 'shared',
    addressPrefix !== null && `by network /${addressPrefix.ipv4}, /${addressPrefix.ipv6}`,
  ];
}
