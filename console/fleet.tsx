import type { Fleet, FleetInstance, History } from '../src/operators/live-answers';
import { nameOf, scopeOf, toneOf, useFleet } from './fleet-answer';
import { limitedShare, limitedShares, percentOf } from './cards';
import { Chart, type ChartLine } from './chart';
import { type Series, recordedOf, valuesAt } from './history';
import type { Tone } from './icons';
import { live } from './live-events';
import { Matrix, oddOnes, settingsText } from './matrix';
import { PageBar } from './page-bar';
import { Card, Named, Notice, Pill, Table, type TableRow } from './parts';
import { addressOf } from './route';
import { Sparkline } from './sparkline';
import { useStore } from './store';
import { Text, counted, duration, measure, percent, secondsOf, shortClock } from './text';

/** All instances: how each is, and which one is odd. */
export function FleetPage() {
  const { event } = useStore(live);
  const fleet = useFleet();
  if (fleet === undefined) {
    const isOnly = event !== undefined && event.health.instances.known === 1;
    return (
      <>
        <PageBar title="Fleet" text={isOnly ? '1 instance' : ''} />
        <p class="empty">
          {isOnly ? (
            <>
              This is the only instance that is known.{' '}
              <a href={addressOf('help', { of: 'docs/operators-api.md#the-fleet' })}>OPERATOR_PEERS names the others</a>
              .
            </>
          ) : (
            'Asking the other instances…'
          )}
        </p>
      </>
    );
  }
  const { instances, pending, omitted, differences, omittedDifferences } = fleet;
  const away = instances.filter(({ problem }) => problem !== null).length;
  return (
    <>
      <PageBar
        title="Fleet"
        text={
          <>
            {counted(instances.length, 'instance')}
            {away > 0 && `, of which ${away} ${away === 1 ? 'does' : 'do'} not answer`}
            {pending > 0 && `; ${pending} have not been asked yet`}
            {omitted > 0 && `; ${omitted} more are not asked`}
          </>
        }
      />
      <div class="grid">
        <Odd fleet={fleet} />
        <Card title="Instances" columns={12} note="what differs from most is marked ≠">
          <InstanceTable fleet={fleet} />
        </Card>
        {differences.length > 0 && (
          <Matrix differences={differences} omitted={omittedDifferences} instances={instances} />
        )}
        <InstanceCharts instances={instances} />
      </div>
    </>
  );
}

/** With more instances, only odd ones have lines, next to that of all as one. */
const MOST_LINES = 6;

/** Charts with a line for each instance. */
function InstanceCharts({ instances }: { readonly instances: readonly FleetInstance[] }) {
  const known = instances.filter(({ id }) => id !== null);
  const isMany = known.length > MOST_LINES;
  const shown = isMany ? oddOnes(known).slice(0, MOST_LINES) : known;
  // Each has a poll of its own: with others, the component is another one.
  return <ChartsOf key={shown.map(({ id }) => id).join()} instances={shown} hasAll={isMany} />;
}

interface ChartsProps {
  readonly instances: readonly FleetInstance[];
  /** Whether all as one have a line, too. */
  readonly hasAll: boolean;
}

function ChartsOf({ instances, hasAll }: ChartsProps) {
  const all = recordedOf().use().value;
  const own = instances.map((instance) => ({ instance, history: recordedOf(instance.id!).use().value }));
  if (all === undefined) return <></>;
  function linesOf(seriesOf: (history: History) => Series): readonly ChartLine[] {
    const lines = own.map(({ instance, history }): ChartLine => ({
      name: nameOf(instance)[0],
      tone: instance.differs.length > 0 ? 'odd' : 'rest',
      values: history === undefined ? [] : valuesAt(all!.times, history.times, seriesOf(history)),
    }));
    return hasAll ? [...lines, { name: 'all', tone: 'rest', values: seriesOf(all!) }] : lines;
  }
  const charts = [
    ['Limited share of hits, %', linesOf(({ rates }) => limitedShares(rates)), percentOf],
    ['Answer time, 99 % within, ms', linesOf(({ latency }) => latency.p99), measure],
  ] as const;
  return (
    <div class="c4 grid top-aligned">
      {charts.map(([title, lines, format]) => (
        <Card key={title} title={title} columns={12} end="by instance">
          <Chart label={`${title}, by instance`} history={all} lines={lines} height={170} format={format} />
        </Card>
      ))}
    </div>
  );
}

/** The instances that are not as most are, in what, and what to do. */
function Odd({ fleet: { instances, differences } }: { readonly fleet: Fleet }) {
  const odd = oddOnes(instances);
  const [first] = odd;
  if (first === undefined) return <></>;
  const [name] = nameOf(first);
  const isOne = odd.length === 1;
  const what = [
    odd.some(({ differs }) => differs.includes('rules')) && 'other rules',
    odd.some(({ differs }) => differs.includes('version')) && 'another version',
    settingsText(differences),
  ].filter((each) => each !== false && each !== '');
  return (
    <Notice
      tone="amber"
      title={
        <>
          <Text text={isOne ? name : `${odd.length} of ${instances.length} instances`} /> {isOne ? 'has' : 'have'}{' '}
          {what.join(' and ')}
          {isOne && first.startedAt !== null && `, since it started at ${shortClock(secondsOf(first.startedAt))}`}
        </>
      }
      actions={
        <>
          {isOne && (
            <a class="button main" href={addressOf('live', { scope: scopeOf(first) })}>
              Show it only
            </a>
          )}
        </>
      }
    >
      <p>To do: wait for the end of a rollout, or make them equal.</p>
    </Notice>
  );
}

const STATES: Readonly<Partial<Record<Tone, string>>> = {
  well: 'well',
  amber: 'impaired',
  red: 'failing',
  none: 'not known',
};

interface TableProps {
  readonly fleet: Fleet;
  /** Whether the card is narrow. */
  readonly isShort?: boolean;
}

const COLUMNS = [
  'Instance',
  'State!',
  'Calls/s:',
  'Trend!!',
  'Limited:',
  '99 %, ms:',
  'Rules!',
  'weir!',
  'Runs since!',
];
/** Of a narrow card. */
const SHORT = [0, 2, 4, 5];

export function InstanceTable({ fleet: { instances }, isShort = false }: TableProps) {
  const { event } = useStore(live);
  const states = new Set([...instances.map(({ health }) => health?.state), event?.health.state]);
  const shown = isShort ? SHORT : [...COLUMNS.keys()];
  return (
    <Table
      title="Instances"
      columns={shown.map((column) => COLUMNS[column]!)}
      rows={instances.map((instance) => {
        const cells = cellsOf(instance, isShort || states.size === 1);
        const kind = instance.problem !== null ? 'odd red' : instance.differs.length > 0 ? 'odd amber' : undefined;
        return { key: scopeOf(instance), kind, cells: shown.map((column) => cells[column]) };
      })}
    />
  );
}

/** @param isCommon whether nothing is said of its state: all have the same, which the status on top explains */
function cellsOf(instance: FleetInstance, isCommon: boolean): TableRow['cells'] {
  const { id, version, startedAt, health, loaded, rates, latency, answeredAt, problem, note, differs } = instance;
  const [name, address] = nameOf(instance);
  const tone = toneOf(instance);
  const answered = answeredAt === null ? '' : `; answered last ${shortClock(secondsOf(answeredAt))}`;
  const wrong = health === null || isCommon ? [] : [health.store, health.rules, health.process];
  const texts =
    problem === null ? wrong.flatMap(({ state, text }) => (state === 'green' ? [] : [text])) : [problem + answered];
  const sub = [address, ...texts, note ?? '']
    .filter((each) => each !== '')
    .map((each) => (
      <div key={each}>
        <Text text={each} />
      </div>
    ));
  const differing = health?.state === 'green' && differs.length > 0 ? 'differs' : STATES[tone]!;
  const state = problem !== null ? 'does not answer' : health === null ? 'not asked yet' : differing;
  const since = startedAt === null ? undefined : secondsOf(startedAt);
  return [
    <Named tone={tone} name={name} href={addressOf('live', { scope: scopeOf(instance) })} sub={sub} />,
    <Pill tone={tone} text={state} />,
    measure(rates?.calls),
    id !== null && <Trend key={id} id={id} />,
    percent(limitedShare(rates)),
    rates !== null && latency === null ? 'no calls' : measure(latency?.p99),
    <Differing is={differs.includes('rules')} text={loaded?.version ?? (health === null ? '' : 'none')} />,
    <Differing is={differs.includes('version')} text={version ?? ''} />,
    since !== undefined && `${shortClock(since)}, ${duration(Date.now() / 1000 - since)}`,
  ];
}

/** The calls of an instance. */
function Trend({ id }: { readonly id: string }) {
  const { value: history } = recordedOf(id).use();
  return history === undefined ? <></> : <Sparkline history={history} values={history.rates.calls} />;
}

/** What may differ from most instances. */
function Differing({ is, text }: { readonly is: boolean; readonly text: string }) {
  return (
    <span class={is ? 'mono unequal' : 'mono'}>
      {is && '≠ '}
      <Text text={text.length > 40 ? `${text.slice(0, 12)}…` : text} />
    </span>
  );
}
