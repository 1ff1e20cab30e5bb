import type { LimitOfCounter } from '../src/explain/explanation';
import type { RuleTotals } from '../src/operators/answers';
import { live } from './live-events';
import { CopyButton, Facts, Pill } from './parts';
import { addressOf } from './route';
import { RuleChart } from './rule-chart';
import { type Rates, type Row, ancestors, isLimiting } from './rule-rows';
import { useStore } from './store';
import { Link, count, counted, effectText, percent, placeText, shareOf, shown } from './text';

/** The chosen rule: its limit, its hits, and whom it limits. */
export function RuleDetails({ row, rates }: { readonly row: Row; readonly rates: Rates | undefined }) {
  const { domain, rule, parent } = row;
  if (rule === undefined) return <></>;
  const descriptor = [...ancestors(parent), rule].map(({ key, value }) => `${key}=${value || 'x'}`).join(',');
  const query = { domain, descriptor };
  const { limit, totals, place, statisticsKey, shadowMode } = rule;
  const facts = {
    ...(totals !== null && factsOf(totals)),
    'When the store fails': rule.onStoreFailure ?? 'as STORE_FAILURE_POLICY says',
    Name: limit?.name,
    Replaces: limit?.replaces.join(', '),
    Value: rule.valueRegex ?? rule.valueCidr ?? undefined,
    File: placeText(place),
    Metadata: rule.metadata === null ? undefined : JSON.stringify(rule.metadata),
  };
  const [tone, state] = shadowMode ? (['well', 'shadow mode'] as const) : (['over', 'limits now'] as const);
  return (
    <aside class="card c4" aria-label="The chosen rule">
      <div class="head">
        <h2 class="large">{shown(statisticsKey)}</h2>
        <span class="end-of-line">{isLimiting(rates) && <Pill tone={tone} text={state} />}</span>
        <p class="quiet whole">{effectText(rule)}</p>
      </div>
      <RuleChart statisticsKey={statisticsKey} limits={(rule.limits ?? []) as readonly LimitOfCounter[]} />
      <Facts facts={Object.entries(facts)} />
      <Limited statisticsKey={statisticsKey} />
      <p class="actions foot">
        <Link kind="button" href={addressOf('explain', query)} text="Explain a request" />
        <Link kind="button" href={addressOf('callers', query)} text="Look up a counter" />
        <CopyButton text={statisticsKey} label="Copy key" />
      </p>
    </aside>
  );
}

function factsOf({ calls, hits, within, near, over, overByLocalCache, shadow }: RuleTotals) {
  if (hits === 0) return { 'Since the start': 'no hits' };
  const all = `${counted(hits, 'hit')}${calls === hits ? '' : ` of ${counted(calls, 'call')}`}`;
  return {
    'Since the start': `${all}, ${count(over)} over the limit (${percent(shareOf(over, hits))})`,
    'Within the limit': `${count(within)}, ${count(near)} of them near it`,
    'From the local cache': over === 0 ? '' : `${count(overByLocalCache)} of those over the limit`,
    'Allowed by shadow mode': shadow === 0 ? '' : count(shadow),
  };
}

/** Callers over the limit of a rule, of those that are limited most. */
function Limited({ statisticsKey }: { readonly statisticsKey: string }) {
  const callers = useStore(live).event?.offenders?.filter(({ rule }) => rule === statisticsKey) ?? [];
  if (callers.length === 0) return <></>;
  return (
    <>
      <div class="head line">
        <h3>Callers over its limit</h3>
        <Link kind="small end-of-line" href={addressOf('callers', { q: statisticsKey })} text="All" />
      </div>
      {callers.map(({ domain, descriptor, limited }) => (
        <p key={descriptor} class="entry">
          <Link kind="who" href={addressOf('callers', { domain, descriptor })} text={descriptor} />
          <span class="number">{count(limited)}</span>
        </p>
      ))}
    </>
  );
}
