import { useMemo } from 'preact/hooks';
import type { History, HistoryMark, LiveEvent, LiveRule } from '../src/operators/live-answers';
import { Chart, type ChartLine, MARKS, MOST_LINES } from './chart';
import { CallerTable } from './callers';
import { keyOfMark, useHistory } from './history';
import { live } from './live-events';
import { Failure, Sparkline, Table, TokenForm } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { Short, Text, Time, clock, count, measure } from './text';

export function LivePage() {
  const { event } = useStore(live);
  const { value: history, error } = useHistory();
  if (event === undefined) return <p class="hint">Waiting for the first event…</p>;
  return (
    <>
      <Loaded event={event} />
      <Numbers rates={event.rates} latency={event.latency} />
      <section>
        <h2>The last hour</h2>
        {error !== undefined && <Failure error={error} />}
        {history !== undefined && <Charts history={history} />}
      </section>
      <div class="columns">
        <Rules title="Rules with the most hits" rules={event.rules.hits} value="hits" history={history} />
        <Rules title="Rules with the most denials" rules={event.rules.denials} value="over" history={history} />
        {event.offenders === null ? (
          <section>
            <h2>Callers that are limited most</h2>
            <TokenForm why="The operator token is needed to see what callers have sent." />
          </section>
        ) : (
          <CallerTable title="Callers that are limited most" offenders={event.offenders} />
        )}
        <Checks checks={event.checks} />
        {event.workers.length > 0 && <Workers workers={event.workers} />}
      </div>
    </>
  );
}

function Loaded({ event: { loaded, rejected } }: { readonly event: LiveEvent }) {
  return (
    <p class="hint">
      {loaded === null ? (
        'No rules are loaded yet.'
      ) : (
        <>
          {count(loaded.rules)} rules from <Text text={loaded.source} />, loaded <Time iso={loaded.at} />.{' '}
          <a href={addressOf('rules', { view: 'changes' })}>What has changed</a>
        </>
      )}
      {rejected !== null && (
        <>
          {' '}
          Last rejection: <Time iso={rejected.at} />.
        </>
      )}
    </p>
  );
}

type NumbersProps = Pick<LiveEvent, 'rates'> & { readonly latency: Partial<NonNullable<LiveEvent['latency']>> | null };

/** What is counted at present. */
export function Numbers({ rates, latency }: NumbersProps) {
  const tiles: readonly (readonly [title: string, unit: string, value: number | undefined])[] = [
    ['Hits within their limits', '/s', rates?.within],
    ['Of these near the limit', '/s', rates?.near],
    ['Hits over their limits', '/s', rates?.over],
    ['Hits over, allowed by shadow mode', '/s', rates?.shadow],
    ['gRPC calls', '/s', rates?.calls],
    ['Calls no rule matches', '/s', rates?.noMatch],
    ['Invalid calls', '/s', rates?.invalid],
    ['Calls the store failed', '/s', rates?.storeErrors],
    ['Half of the calls within', 'ms', latency?.p50],
    ['99 % of the calls within', 'ms', latency?.p99],
  ];
  return (
    <dl class="tiles">
      {tiles.map(([title, unit, value]) => (
        <div class="tile" key={title}>
          <dt>{title}</dt>
          <dd>
            {value === undefined ? (
              // The first rates need two looks at the counters.
              <span class="hint">{unit === 'ms' && rates !== null ? 'no calls' : 'measuring…'}</span>
            ) : (
              <>
                <b>{measure(value)}</b> {unit}
              </>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Charts({ history }: { readonly history: History }) {
  const charts = useMemo(() => chartsOf(history), [history]);
  if (history.times.length === 0) {
    return <p class="hint">The first numbers are there {history.interval} seconds after the start.</p>;
  }
  return (
    <>
      <div class="charts">
        {charts.map(
          ([title, unit, lines]) =>
            lines.length > 0 && <Chart key={title} title={title} unit={unit} history={history} lines={lines} />,
        )}
        <Marks marks={history.marks} />
      </div>
      {history.rules.length > 0 && <BusiestRules rules={history.rules} />}
    </>
  );
}

type ChartOfLines = readonly [title: string, unit: string, lines: readonly ChartLine[]];

function chartsOf({ rates, latency, store, rules }: History): readonly ChartOfLines[] {
  return [
    [
      'Hits',
      'per second',
      [
        { name: 'within', values: rates.within },
        { name: 'over', values: rates.over },
        { name: 'near', values: rates.near },
        { name: 'over, in shadow mode', values: rates.shadow },
      ],
    ],
    [
      'gRPC calls',
      'per second',
      [
        { name: 'all', values: rates.calls },
        { name: 'the store failed', values: rates.storeErrors },
        { name: 'no rule matches', values: rates.noMatch },
        { name: 'invalid', values: rates.invalid },
      ],
    ],
    [
      'Latency',
      'ms',
      [
        { name: 'half of the calls', values: latency.p50 },
        { name: '99 % of the calls', values: latency.p99 },
        { name: 'store, mean', values: store.latency },
      ],
    ],
    [
      'Requests to the store',
      'per second',
      [
        { name: 'all', values: store.requests },
        { name: 'failed', values: store.errors },
      ],
    ],
    [
      'Busiest rules',
      'hits per second',
      // In the order of their names, so that each keeps its colour while others become busier.
      rules
        .slice(0, MOST_LINES)
        .map(({ statisticsKey, hits }) => ({ name: statisticsKey, values: hits }))
        .sort((one, other) => (one.name < other.name ? -1 : 1)),
    ],
  ];
}

function BusiestRules({ rules }: Pick<History, 'rules'>) {
  return (
    <details>
      <summary>The {count(rules.length)} busiest rules of the last hour</summary>
      <Table title="Busiest rules" columns={['Rule', 'Hits/s at last:', 'Over/s at last:', 'Hits in the last hour!']}>
        {rules.map(({ statisticsKey: key, hits, over }) => (
          <tr key={key}>
            <td class="text">
              <Short text={key} href={addressOf('rules', { rule: key })} />
            </td>
            <td class="number">{measure(hits.at(-1))}</td>
            <td class="number">{measure(over.at(-1))}</td>
            <td class="wide">
              <Sparkline values={hits} />
            </td>
          </tr>
        ))}
      </Table>
    </details>
  );
}

/** The cells of a rule: its name, and its rates. */
export function RuleRates({ rule: { statisticsKey, hits, over } }: { readonly rule: LiveRule }) {
  return (
    <>
      <td class="text">
        <Short text={statisticsKey} href={addressOf('rules', { rule: statisticsKey })} />
      </td>
      <td class="number">{measure(hits)}</td>
      <td class="number">{measure(over)}</td>
    </>
  );
}

interface RulesProps {
  readonly title: string;
  readonly rules: readonly LiveRule[];
  readonly value: 'hits' | 'over';
  readonly history: History | undefined;
}

function Rules({ title, rules, value, history }: RulesProps) {
  if (rules.length === 0) {
    return (
      <section>
        <h2>{title}</h2>
        <p class="hint">None in the last seconds.</p>
      </section>
    );
  }
  return (
    <Table title={title} columns={['Rule', 'Hits/s:', 'Over/s:', 'Last hour!']}>
      {rules.map((rule) => (
        <tr key={rule.statisticsKey}>
          <RuleRates rule={rule} />
          <td class="wide">
            <Sparkline
              values={history?.rules.find(({ statisticsKey }) => statisticsKey === rule.statisticsKey)?.[value] ?? []}
            />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Marks({ marks }: { readonly marks: readonly HistoryMark[] }) {
  return (
    <Table title="What has happened" columns={['When', 'What']}>
      {marks
        .toReversed()
        .slice(0, 20)
        .map((mark) => (
          <tr key={keyOfMark(mark)}>
            <td class="number">
              {MARKS[mark.kind]} <time dateTime={new Date(mark.at * 1000).toISOString()}>{clock(mark.at)}</time>
            </td>
            <td class="text">
              <Short text={mark.text} />
            </td>
          </tr>
        ))}
    </Table>
  );
}

function Checks({ checks }: Pick<LiveEvent, 'checks'>) {
  return (
    <Table title="Checks" columns={['Check', 'State']}>
      {checks.map(({ name, failure, note }) => (
        <tr key={name}>
          <td>{name}</td>
          <td class={failure !== null ? 'bad' : note !== null ? 'impaired' : 'good'}>{failure ?? note ?? 'passes'}</td>
        </tr>
      ))}
    </Table>
  );
}

function Workers({ workers }: Pick<LiveEvent, 'workers'>) {
  return (
    <Table title="Workers" columns={['Worker:', 'State', 'Connections:', 'Process:!', 'Up, s:', 'Restarts:']}>
      {workers.map(({ worker, pid, isServing, isResponsive, connections, uptimeSeconds, restarts }) => (
        <tr key={worker}>
          <td class="number">{worker}</td>
          <td class={isServing && isResponsive ? 'good' : 'bad'}>
            {!isServing ? 'starting' : isResponsive ? 'serving' : 'not answering'}
          </td>
          <td class="number">{count(connections)}</td>
          <td class="number wide">{pid}</td>
          <td class="number">{count(uptimeSeconds)}</td>
          <td class="number">{count(restarts)}</td>
        </tr>
      ))}
    </Table>
  );
}
