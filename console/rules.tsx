import { useMemo } from 'preact/hooks';
import type { History } from '../src/operators/live-answers';
import type { NestedRule, RulesAnswer } from '../src/operators/answers';
import { useAnswer, useTicks } from './api';
import { Sparkline } from './sparkline';
import { ConfigurationChanges, RejectedConfiguration } from './configurations';
import { useFleet, useHistory } from './fleet-answer';
import { live } from './live-events';
import { LongList } from './long-list';
import { PageBar } from './page-bar';
import { Answered, Choice, Field, Share } from './parts';
import { addressOf, replaceParameters, route } from './route';
import { RuleDetails } from './rule-details';
import { type Rates, type Row, isLimiting, keyOf, limitedShareOf, matching, rowsOf, useRates } from './rule-rows';
import { useStore } from './store';
import { Text, Time, count, effectText, measure, placeText } from './text';

/**
 * Milliseconds between two looks at the totals, and for each rule more: a thousand rules take the service some
 * milliseconds.
 */
const [LOOK_INTERVAL, LOOK_INTERVAL_OF_RULE] = [5_000, 5];

export function RulesPage() {
  const { parameters } = useStore(route);
  const { event } = useStore(live);
  const fleet = useFleet();
  const view = parameters.get('view') ?? '';
  const loaded = event?.loaded;
  const views = [
    ['', `Active ${loaded ? count(loaded.rules) : ''}`],
    ['changes', 'Changes'],
    ['rejected', event?.rejected ? 'Rejected' : 'Rejected: none'],
  ] as const;
  return (
    <>
      <PageBar
        title="Rules"
        hasRange={view === ''}
        text={
          loaded && (
            <>
              <Text text={loaded.version} /> from <Text text={loaded.source} />, loaded <Time iso={loaded.at} />
              {fleet !== undefined && '; numbers of this instance only'}
            </>
          )
        }
      >
        <nav class="choice" aria-label="Configurations">
          {views.map(([name, title]) => (
            <a key={name} href={addressOf('rules', { view: name })} aria-current={name === view ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
      </PageBar>
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
  const { event } = useStore(live);
  const { value: history } = useHistory();
  const ticks = useTicks(LOOK_INTERVAL + (event?.loaded?.rules ?? 0) * LOOK_INTERVAL_OF_RULE);
  const answer = useAnswer<RulesAnswer>('rules', `${event?.loaded?.at} ${ticks}`);
  const [search, shown] = [parameters.get('q') ?? '', parameters.get('show') ?? ''];
  const rows = useMemo(() => rowsOf(answer.value), [answer.value]);
  const rates = useRates(answer.value, rows);
  const limiting = rows.filter((row) => isLimiting(rates.get(keyOf(row)))).length;
  const shadows = rows.filter(({ rule }) => rule?.shadowMode).length;
  const found = useMemo(
    () =>
      matching(rows, (row) => {
        if (!row.searched.includes(search.toLowerCase())) return false;
        if (shown === 'limiting') return isLimiting(rates.get(keyOf(row)));
        return shown !== 'shadow' || row.rule?.shadowMode === true;
      }),
    [rows, search, shown],
  );
  const key = parameters.get('rule');
  const chosen = key === null ? -1 : found.findIndex((row) => keyOf(row) === key);
  return (
    <Answered
      answer={answer}
      show={({ loaded }) => (
        <div class="grid">
          <section class={`card fill ${chosen >= 0 ? 'c8' : 'c12'}`} aria-label="Active rules">
            <div class="head tools">
              <Field
                label="Search by key, value or name"
                type="search"
                value={search}
                onText={(q) => replaceParameters({ q, rule: undefined })}
              />
              <Choice
                label="Show"
                options={[
                  ['', 'All'],
                  ['limiting', `Limiting ${count(limiting)}`],
                  ['shadow', `Shadow ${count(shadows)}`],
                ]}
                value={shown}
                onChoose={(show) => replaceParameters({ show, rule: undefined })}
              />
              <span role="status" class="small quiet">
                {count(found.filter(({ rule }) => rule !== undefined).length)} shown
              </span>
            </div>
            {loaded === null && (
              <p class="empty">No rules are loaded yet: correct the rule files, and see what was rejected.</p>
            )}
            {found.length === 0 && loaded !== null && <p class="empty">No rule is like this.</p>}
            <div class="columns" aria-hidden="true">
              <span>Rule</span>
              <span>Limit</span>
              <span class="number">Hits/s</span>
              <span class="number">Limited share</span>
              <span class="wide">Trend</span>
              <span class="wide">File</span>
            </div>
            <LongList
              label="Rules"
              count={found.length}
              chosen={chosen}
              onChoose={(index) => replaceParameters({ rule: keyOf(found[index]!) })}
              render={(index) => (
                <RuleRow row={found[index]!} rates={rates.get(keyOf(found[index]!))} history={history} />
              )}
            />
          </section>
          {chosen >= 0 && <RuleDetails row={found[chosen]!} rates={rates.get(keyOf(found[chosen]!))} />}
        </div>
      )}
    />
  );
}

interface RowProps {
  readonly row: Row;
  readonly rates: Rates | undefined;
  readonly history: History | undefined;
}

function RuleRow({ row, rates, history }: RowProps) {
  const { domain, rule, depth } = row;
  if (rule === undefined) {
    return (
      <b class="domain">
        <Text text={domain} />
      </b>
    );
  }
  const { key, value, place, totals, shadowMode } = rule;
  const share = limitedShareOf(row, rates);
  const known = history?.rules.find(({ statisticsKey }) => statisticsKey === rule.statisticsKey);
  return (
    <>
      <span class={`cell ${totals === null ? 'idle' : ''}`}>
        {depth > 1 && <span class="faint">{'\u2003'.repeat(Math.min(depth, 6) - 1)}└ </span>}
        <b>
          <Text text={key} />
        </b>
        {value === '' ? (
          <span class="faint small"> any</span>
        ) : (
          <>
            {' = '}
            <Text text={value} />
          </>
        )}
        <Flags rule={rule} />
      </span>
      <span class={`cell limit-of ${totals === null ? 'idle' : ''}`}>{effectText(rule)}</span>
      {totals !== null && (
        <>
          <span
            class="cell number"
            title={`${count(totals.hits)} hits of ${count(totals.calls)} calls since the start`}
          >
            {rates === undefined ? measure(known?.hits.at(-1)) : measure(rates.hits)}
          </span>
          <span class="cell number">
            <Share share={share} isShadow={shadowMode} />
          </span>
          <span class="cell wide">
            {known !== undefined && history !== undefined && (
              <Sparkline
                history={history}
                values={known.hits}
                tone={shadowMode ? 'third' : (share ?? 0) > 50 ? 'over' : 'pass'}
              />
            )}
          </span>
        </>
      )}
      <span class="cell wide mono small faint place">
        <Text text={placeText(place)} />
      </span>
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
  return (
    <>
      {flags.map(
        (flag) =>
          flag !== false && (
            <span key={flag} class="tag">
              {flag}
            </span>
          ),
      )}
    </>
  );
}
