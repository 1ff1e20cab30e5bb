import type { LimitOfCounter } from '../src/explain/explanation';
import { live } from './live-events';
import { CopyButton, Facts, Pill } from './parts';
import { addressOf } from './route';
import { RuleChart } from './rule-chart';
import { type Rates, type Row, ancestors, isLimiting } from './rule-rows';
import { useStore } from './store';
import { Text, count, effectText, percent, placeText, shareOf } from './text';

/** The chosen rule: its limit, its hits, and whom it limits. */
export function RuleDetails({
  row: { domain, rule, parent },
  rates,
}: {
  readonly row: Row;
  readonly rates: Rates | undefined;
}) {
  if (rule === undefined) return <></>;
  const descriptor = [...ancestors(parent), rule].map(({ key, value }) => `${key}=${value || 'x'}`).join(',');
  const { limit, totals, place, statisticsKey } = rule;
  const share = shareOf(totals?.over, totals?.hits);
  const facts: readonly (readonly [string, string | undefined])[] = [
    [
      'Since the start',
      totals === null
        ? undefined
        : `${count(totals.hits)} hits, ${count(totals.over)} over the limit (${percent(share)})`,
    ],
    ['Within the limit', totals === null ? undefined : count(totals.within)],
    ['Near the limit', totals === null ? undefined : count(totals.near)],
    [
      'From the local cache',
      totals === null || totals.over === 0 ? undefined : `${count(totals.overByLocalCache)} of those over the limit`,
    ],
    ['Allowed by shadow mode', totals === null || totals.shadow === 0 ? undefined : count(totals.shadow)],
    ['When the store fails', rule.onStoreFailure ?? 'as STORE_FAILURE_POLICY says'],
    ['Name', limit?.name],
    ['Replaces', limit?.replaces.join(', ')],
    ['Value', rule.valueRegex ?? rule.valueCidr ?? undefined],
    ['File', placeText(place)],
    ['Metadata', rule.metadata === null ? undefined : JSON.stringify(rule.metadata)],
  ];
  return (
    <aside class="card c4" aria-label="The chosen rule">
      <div class="head">
        <h2 class="large">
          <Text text={statisticsKey} />
        </h2>
        <span class="end-of-line">
          {isLimiting(rates) &&
            (rule.shadowMode ? <Pill tone="well" text="shadow mode" /> : <Pill tone="over" text="limits now" />)}
        </span>
        <p class="quiet whole">{effectText(rule)}</p>
      </div>
      <RuleChart statisticsKey={statisticsKey} limits={(rule.limits ?? []) as readonly LimitOfCounter[]} />
      <Facts facts={facts} />
      <Limited statisticsKey={statisticsKey} />
      <p class="actions foot">
        <a class="button" href={addressOf('explain', { domain, descriptor })}>
          Explain a request
        </a>
        <a class="button" href={addressOf('callers', { domain, descriptor })}>
          Look up a counter
        </a>
        <CopyButton text={statisticsKey} label="Copy key" />
      </p>
    </aside>
  );
}

/** Callers that a rule limits, of those that are limited most. */
function Limited({ statisticsKey }: { readonly statisticsKey: string }) {
  const callers = useStore(live).event?.offenders?.filter(({ rule }) => rule === statisticsKey) ?? [];
  return (
    <>
      <div class="head line">
        <h3>Callers that it limits</h3>
        <a class="small end-of-line" href={addressOf('callers', { q: statisticsKey })}>
          All
        </a>
      </div>
      {callers.map(({ domain, descriptor, limited }) => (
        <p key={descriptor} class="entry">
          <a class="who" href={addressOf('callers', { domain, descriptor })}>
            <Text text={descriptor} />
          </a>
          <span class="number">{count(limited)}</span>
        </p>
      ))}
    </>
  );
}
