import { useState } from 'preact/hooks';
import type { History, LiveEvent, LiveRates } from '../src/operators/live-answers';
import { Log, OutageTable } from './activity';
import { CallerTable } from './callers';
import { NumberCards, figuresOf } from './cards';
import { useHappenings } from './changes';
import { Chart } from './chart';
import { Sparkline } from './sparkline';
import { InstanceTable } from './fleet';
import { type Scope, useHistory, useScope } from './fleet-answer';
import { type Happening, answerText } from './happenings';
import { TONES } from './icons';
import { live } from './live-events';
import { PageBar } from './page-bar';
import { Card, Failure, Named, Share, Table, TokenForm } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { clock, duration, measure, secondsOf, shareOf, zone } from './text';

const EMPTY: History = {
  ...{ interval: 10, times: [], marks: [], rules: [], instances: [] },
  rates: { within: [], near: [], over: [], shadow: [], calls: [], invalid: [], storeErrors: [], noMatch: [] },
  latency: { p50: [], p99: [] },
  store: { requests: [], errors: [], latency: [] },
};

/** Happenings that have room next to the chart. */
const MOST_HAPPENINGS = 4;

export function LivePage() {
  const { event } = useStore(live);
  const { value: history = EMPTY, error } = useHistory();
  const scope = useScope();
  const [chosen, setChosen] = useState<number>();
  const happenings = useHappenings();
  if (event === undefined) return <p class="empty">Waiting for the first event…</p>;
  const { rates, latency, fleet } = scope;
  const figures = figuresOf(rates, latency, history);
  const isFailing = (rates?.storeErrors ?? 0) > 0;
  // When calls fail, they are what the chart is about.
  const index = chosen ?? (isFailing ? 2 : 1);
  const figure = figures[index]!;
  return (
    <>
      <PageBar
        title="Live"
        hasRange
        text={
          <>
            {scope.text}
            <span class="faint wide">
              {' · '}
              {clock(secondsOf(event.at))} {zone}
            </span>
          </>
        }
      />
      <div class="grid">
        {error !== undefined && <Failure error={error} />}
        <NumberCards figures={figures} history={history} chosen={index} onChoose={setChosen} />
        <Card title={figure.title} columns={8} kind="fill" end={<ChartNote rates={rates} />}>
          <Chart label={figure.title} history={history} lines={figure.lines} format={figure.format} />
        </Card>
        <Card
          title="What changed"
          columns={4}
          kind="fill changed"
          end={<a href={addressOf('activity')}>All activity</a>}
        >
          <Log happenings={happenings.slice(0, MOST_HAPPENINGS)} />
          {isFailing && <NoChange happenings={happenings} />}
        </Card>
        {(isFailing || event.health.store.state === 'red') && (
          <>
            <StoreServers store={event.health.store} />
            <OutageTable marks={history.marks} />
          </>
        )}
        <LimitedCallers event={event} scope={scope} />
        {fleet !== undefined && scope.instance === undefined ? (
          <Card title="Instances" columns={4} kind="changed" end={<a href={addressOf('fleet')}>Compare</a>}>
            <InstanceTable isShort fleet={fleet} />
          </Card>
        ) : (
          <LimitingRules rules={event.rules} history={history} />
        )}
        {event.workers.length > 0 && <Workers workers={event.workers} />}
      </div>
    </>
  );
}

function ChartNote({ rates }: { readonly rates: LiveRates | null | undefined }) {
  const notes = [
    ['near a limit', rates?.near],
    ['shadow mode', rates?.shadow],
  ] as const;
  const shown = notes.filter(([, value]) => value !== undefined && value > 0);
  return <>{shown.map(([name, value]) => `${name} ${measure(value)}/s`).join(' · ')}</>;
}

/** Whether rules have changed before the last outage is the first thing to know of it. */
function NoChange({ happenings }: { readonly happenings: readonly Happening[] }) {
  const down = happenings.findLast(
    ({ shape, at }) => shape === 'down' && !happenings.some((back) => back.shape === 'back' && back.at > at),
  );
  if (
    down === undefined ||
    happenings.some(({ shape, at }) => shape === 'load' && at < down.at && at > down.at - 900)
  ) {
    return <></>;
  }
  return <p class="foot">No change of the rules in the 15 min before the outage.</p>;
}

function LimitedCallers({ event, scope: { fleet, instance } }: { readonly event: LiveEvent; readonly scope: Scope }) {
  const offenders = fleet !== undefined && instance === undefined ? fleet.offenders : event.offenders;
  const isOther = fleet !== undefined && instance !== undefined && instance.address !== null;
  if (offenders === null) {
    return (
      <Card title="Limited callers" columns={8}>
        <TokenForm why="The operator token is needed to see what callers have sent." />
      </Card>
    );
  }
  return (
    <Card
      title="Limited callers"
      columns={8}
      note={isOther ? 'of the instance that answers' : 'in the last 10 min'}
      end={<a href={addressOf('callers')}>All callers</a>}
    >
      <CallerTable offenders={offenders.slice(0, 8)} />
    </Card>
  );
}

function LimitingRules({ rules, history }: { readonly rules: LiveEvent['rules']; readonly history: History }) {
  const shown = [...new Map([...rules.denials, ...rules.hits].map((rule) => [rule.statisticsKey, rule])).values()];
  return (
    <Card title="Busiest rules" columns={4} kind="changed" end={<a href={addressOf('rules')}>All rules</a>}>
      {shown.length === 0 ? (
        <p class="empty">None in the last seconds.</p>
      ) : (
        <Table
          title="Busiest rules"
          columns={['Rule', 'Hits/s:', 'Limited:', 'Trend!']}
          rows={shown.slice(0, 6).map(({ statisticsKey: key, hits, over, calls }) => ({
            key,
            cells: [
              <Named name={key} href={addressOf('rules', { rule: key })} sub={callsText(hits, calls)} />,
              measure(hits),
              <Share share={shareOf(over, hits)} />,
              <Sparkline
                history={history}
                values={history.rules.find(({ statisticsKey }) => statisticsKey === key)?.hits ?? []}
                tone={over > 0 ? 'over' : 'pass'}
              />,
            ],
          }))}
        />
      )}
    </Card>
  );
}

/** Of several limits, a call has a hit on each. */
function callsText(hits: number, calls: number): string | undefined {
  return Math.abs(hits - calls) < 0.01 * hits ? undefined : `${measure(calls)} calls/s`;
}

/** In an outage: which servers, since when, and what callers get. */
function StoreServers({ store: { servers, policy } }: { readonly store: LiveEvent['health']['store'] }) {
  return (
    <Card
      title="Servers of the store"
      columns={8}
      note={`calls ${answerText(policy)}${policy === null ? '' : ` (policy ${policy})`}, unless a rule has its own policy`}
    >
      <Table
        title="Servers of the store"
        columns={['Server', 'Requests/s:!', 'Failed/s:', 'Mean, ms:!']}
        rows={servers.map(({ server, store: name, state, text, requests, errors, latency }) => ({
          key: `${name} ${server}`,
          cells: [
            <Named tone={TONES[state]} name={name === '' ? server : `${server} (${name})`} sub={text} />,
            measure(requests),
            measure(errors),
            measure(latency),
          ],
        }))}
      />
    </Card>
  );
}

function Workers({ workers }: Pick<LiveEvent, 'workers'>) {
  return (
    <Card title="Workers" columns={8} note="of this instance">
      <Table
        title="Workers"
        columns={['Worker', 'Connections:', 'Up:!', 'Restarts:']}
        rows={workers.map(({ worker, isServing, isResponsive, connections, uptimeSeconds, restarts }) => {
          const sub = !isServing ? 'starting' : isResponsive ? 'serving' : 'not answering';
          const tone = isServing && isResponsive ? 'well' : 'red';
          return {
            key: worker,
            cells: [
              <Named tone={tone} name={String(worker)} sub={sub} />,
              measure(connections),
              duration(uptimeSeconds),
              measure(restarts),
            ],
          };
        })}
      />
    </Card>
  );
}
