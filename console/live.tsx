import { useState } from 'preact/hooks';
import type { LiveEvent } from '../src/operators/live-answers';
import { Log, OutageTable } from './activity';
import { CallerTable } from './callers';
import { NumberCards, figuresOf } from './cards';
import { useHappenings } from './changes';
import { Chart } from './chart';
import { Sparkline } from './sparkline';
import { InstanceTable } from './fleet';
import { type Scope, useHistory, useScope } from './fleet-answer';
import { type Happening, answerText } from './happenings';
import { EMPTY, useRecorded } from './history';
import { TONES } from './icons';
import { live } from './live-events';
import { PageBar } from './page-bar';
import { Card, Failure, Named, Share, Table, TokenForm } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { Link, clock, duration, listed, measure, secondsOf, shareOf, zone } from './text';

/** Happenings that have room next to the chart. */
const MOST_HAPPENINGS = 4;

export function LivePage() {
  const { event } = useStore(live);
  const { value: history = EMPTY, error } = useHistory();
  const scope = useScope();
  const [chosen, setChosen] = useState<number>();
  const happenings = useHappenings();
  if (event === undefined) return <p class="empty">Waiting for the first event…</p>;
  const { rates, fleet, instance } = scope;
  const store = instance?.health?.store ?? event.health.store;
  const figures = figuresOf(scope, history);
  const isFailing = (rates?.storeErrors ?? 0) > 0;
  // When calls fail, they are what the chart is about.
  const index = chosen ?? (isFailing ? 2 : 1);
  const { title, lines, format } = figures[index]!;
  const time = <span class="faint wide"> · {`${clock(secondsOf(event.at))} ${zone}`}</span>;
  const noted = Object.entries({ 'near a limit': rates?.near ?? 0, 'shadow mode': rates?.shadow ?? 0 });
  const notes = noted.map(([name, value]) => value > 0 && `${name} ${measure(value)}/s`);
  const all = <Link href={addressOf('activity')} text="All activity" />;
  return (
    <>
      <PageBar title="Live" hasRange text={[scope.text, time]} />
      <div class="grid">
        {error !== undefined && <Failure error={error} />}
        <NumberCards figures={figures} history={history} chosen={index} onChoose={setChosen} />
        <Card title={title} columns={8} kind="fill" end={listed(notes, ' · ')}>
          <Chart label={title} history={history} lines={lines} format={format} />
        </Card>
        <Card title="What changed" columns={4} kind="fill changed" end={all}>
          <Log happenings={happenings.slice(0, MOST_HAPPENINGS)} />
          {isFailing && hasNoChange(happenings) && (
            <p class="foot">No change of the rules in the 15 min before the outage.</p>
          )}
        </Card>
        {(isFailing || store.state === 'red') && (
          <>
            <StoreServers store={store} />
            <OutageTable marks={history.marks} />
          </>
        )}
        <LimitedCallers event={event} scope={scope} />
        {fleet !== undefined && instance === undefined ? (
          <Card title="Instances" columns={4} kind="changed" end={<Link href={addressOf('fleet')} text="Compare" />}>
            <InstanceTable isShort fleet={fleet} />
          </Card>
        ) : (
          <BusiestRules event={event} scope={scope} />
        )}
        {event.workers.length > 0 && <Workers workers={event.workers} />}
      </div>
    </>
  );
}

/** Whether rules have changed before the last outage is the first thing to know of it. */
function hasNoChange(happenings: readonly Happening[]): boolean {
  const down = happenings.findLast(
    ({ shape, at }) => shape === 'down' && !happenings.some((back) => back.shape === 'back' && back.at > at),
  );
  if (down === undefined) return false;
  return !happenings.some(({ shape, at }) => shape === 'load' && at < down.at && at > down.at - 900);
}

interface PartProps {
  readonly event: LiveEvent;
  readonly scope: Scope;
}

/** What is said where the numbers are not those of the instance that is chosen; empty: they are. */
function whoseOf({ instance }: Scope): string {
  return (instance?.address ?? null) === null ? '' : 'of the instance that answers';
}

function LimitedCallers({ event, scope }: PartProps) {
  const { fleet, instance } = scope;
  const offenders = fleet !== undefined && instance === undefined ? fleet.offenders : event.offenders;
  const all = <Link href={addressOf('callers')} text="All callers" />;
  return (
    <Card title="Limited callers" columns={8} note={whoseOf(scope) || 'in the last 10 min'} end={all}>
      {offenders === null ? (
        <TokenForm why="The operator token is needed to see what callers have sent." />
      ) : (
        <CallerTable offenders={offenders.slice(0, 8)} />
      )}
    </Card>
  );
}

function BusiestRules({ event: { rules }, scope }: PartProps) {
  // The first instance is this one.
  const { value: history = EMPTY } = useRecorded(scope.fleet?.instances[0]?.id ?? '');
  const known = new Map(history.rules.map((rule) => [rule.statisticsKey, rule.hits]));
  const busiest = [...new Map([...rules.denials, ...rules.hits].map((rule) => [rule.statisticsKey, rule])).values()];
  const rows = busiest.slice(0, 6).map(({ statisticsKey: key, hits, over, shadow, calls }) => {
    const isShadow = shadow === over;
    // Of several limits, a call has a hit on each.
    const sub = Math.abs(hits - calls) < 0.01 * hits ? undefined : `${measure(calls)} calls/s`;
    const trend = <Sparkline history={history} values={known.get(key) ?? []} tone={isShadow ? 'pass' : 'over'} />;
    const name = <Named name={key} href={addressOf('rules', { rule: key })} sub={sub} />;
    const limited = <Share share={shareOf(over, hits)} kind={isShadow ? 'shadow' : ''} />;
    return { key, cells: [name, measure(hits), limited, trend] };
  });
  const columns = ['Rule', 'Hits/s:', 'Limited:', 'Trend!'];
  const all = <Link href={addressOf('rules')} text="All rules" />;
  return (
    <Card title="Busiest rules" columns={4} kind="changed" note={whoseOf(scope)} end={all}>
      <Table title="Busiest rules" columns={columns} rows={rows} empty="None in the last seconds." />
    </Card>
  );
}

/** In an outage: which servers, since when, and what callers get. */
function StoreServers({ store: { servers, policy } }: { readonly store: LiveEvent['health']['store'] }) {
  const named = policy === null ? '' : ` (policy ${policy})`;
  const rows = servers.map(({ server, store, state, text, requests, errors, latency }) => {
    const name = store === '' ? server : `${server} (${store})`;
    const numbers = [requests, errors, latency].map(measure);
    return { key: name, cells: [<Named tone={TONES[state]} name={name} sub={text} />, ...numbers] };
  });
  const note = `calls ${answerText(policy)}${named}, unless a rule has its own policy`;
  const columns = ['Server', 'Requests/s:!', 'Failed/s:', 'Mean, ms:!'];
  return (
    <Card title="Servers of the store" columns={8} note={note}>
      <Table title="Servers of the store" columns={columns} rows={rows} />
    </Card>
  );
}

function Workers({ workers }: Pick<LiveEvent, 'workers'>) {
  const rows = workers.map(({ worker, isServing, isResponsive, connections, uptimeSeconds, restarts }) => {
    const sub = !isServing ? 'starting' : isResponsive ? 'serving' : 'not answering';
    const name = <Named tone={sub === 'serving' ? 'well' : 'red'} name={String(worker)} sub={sub} />;
    return { key: worker, cells: [name, measure(connections), duration(uptimeSeconds), measure(restarts)] };
  });
  return (
    <Card title="Workers" columns={8} note="of this instance">
      <Table title="Workers" columns={['Worker', 'Connections:', 'Up:!', 'Restarts:']} rows={rows} />
    </Card>
  );
}
