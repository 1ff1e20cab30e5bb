import type { ComponentChildren } from 'preact';
import type { Fleet, FleetInstance, History } from '../src/operators/live-answers';
import { nameOf, scopeOf, toneOf, useFleet } from './fleet-answer';
import { limitedShare, limitedShares } from './cards';
import { Chart, type ChartLine } from './chart';
import { type Series, useRecorded, valuesAt } from './history';
import { STATES } from './icons';
import { live } from './live-events';
import { Matrix, oddOnes, settingsText } from './matrix';
import { PageBar } from './page-bar';
import { Card, Named, Notice, Pill, Table } from './parts';
import { addressOf } from './route';
import { Sparkline } from './sparkline';
import { useStore } from './store';
import { Link, counted, duration, listed, measure, percent, secondsOf, shortClock, shown } from './text';

/** All instances: how each is, and which one is odd. */
export function FleetPage() {
  const { event } = useStore(live);
  const fleet = useFleet();
  if (fleet === undefined) return <Alone isKnown={event?.health.instances.known === 1} />;
  const { instances, pending, omitted, differences } = fleet;
  const away = instances.filter(({ problem }) => problem !== null).length;
  const text = [
    counted(instances.length, 'instance'),
    away > 0 && `, of which ${away} ${away === 1 ? 'does' : 'do'} not answer`,
    pending > 0 && `; ${pending} have not been asked yet`,
    omitted > 0 && `; ${omitted} more are not asked`,
  ];
  return (
    <>
      <PageBar title="Fleet" text={listed(text, '')} hasRange />
      <div class="grid">
        <Odd fleet={fleet} />
        <Card title="Instances" columns={12} note="what differs from most is marked ≠">
          <InstanceTable fleet={fleet} />
        </Card>
        {differences.length > 0 && <Matrix fleet={fleet} />}
        <InstanceCharts instances={instances} />
      </div>
    </>
  );
}

function Alone({ isKnown }: { readonly isKnown: boolean }) {
  const help = addressOf('help', { of: 'docs/operators-api.md#the-fleet' });
  const peers = <Link href={help} text="OPERATOR_PEERS names the others" />;
  return (
    <>
      <PageBar title="Fleet" text={isKnown && '1 instance'} />
      <p class="empty">
        {isKnown ? ['This is the only instance that is known. ', peers, '.'] : 'Asking the other instances…'}
      </p>
    </>
  );
}

/** With more instances, only odd ones have lines, next to that of all as one. */
const MOST_LINES = 6;

/** Charts with a line for each instance. */
function InstanceCharts({ instances }: { readonly instances: readonly FleetInstance[] }) {
  const known = instances.filter(({ id }) => id !== null);
  const isMany = known.length > MOST_LINES;
  const drawn = isMany ? oddOnes(known).slice(0, MOST_LINES) : known;
  // Each is read on its own: with others, the component is another one.
  return <ChartsOf key={drawn.map(({ id }) => id).join()} instances={drawn} hasAll={isMany} />;
}

interface ChartsProps {
  readonly instances: readonly FleetInstance[];
  /** Whether all as one have a line, too. */
  readonly hasAll: boolean;
}

function ChartsOf({ instances, hasAll }: ChartsProps) {
  const { value: all } = useRecorded();
  const own = instances.map((instance) => ({ instance, history: useRecorded(instance.id!).value }));
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
    ['Limited share of hits, %', linesOf(({ rates }) => limitedShares(rates)), percent],
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
  const [first, ...others] = odd;
  if (first === undefined) return <></>;
  const isOne = others.length === 0;
  const what = [
    odd.some(({ differs }) => differs.includes('rules')) && 'other rules',
    odd.some(({ differs }) => differs.includes('version')) && 'another version',
    settingsText(differences),
  ];
  const title = [
    isOne ? `${nameOf(first)[0]} has ` : `${odd.length} of ${instances.length} instances have `,
    listed(what, ' and '),
    isOne && first.startedAt !== null && `, since it started at ${shortClock(secondsOf(first.startedAt))}`,
  ];
  const show = <Link kind="button main" href={addressOf('live', { scope: scopeOf(first) })} text="Show it only" />;
  return (
    <Notice tone="amber" title={listed(title, '')} actions={isOne && show}>
      <p>To do: wait for the end of a rollout, or make them equal.</p>
    </Notice>
  );
}

interface TableProps {
  readonly fleet: Fleet;
  /** Whether the card is narrow. */
  readonly isShort?: boolean;
}

/** Columns of a narrow card. */
const SHORT = ['Instance', 'Calls/s:', 'Limited:', '99 %, ms:'];

export function InstanceTable({ fleet: { instances }, isShort = false }: TableProps) {
  const { event } = useStore(live);
  const states = new Set([...instances.map(({ health }) => health?.state), event?.health.state]);
  const cells = instances.map((instance) => cellsOf(instance, isShort || states.size === 1));
  const columns = isShort ? SHORT : Object.keys(cells[0] ?? {});
  const rows = instances.map((instance, index) => ({
    key: scopeOf(instance),
    kind: instance.problem !== null ? 'odd red' : instance.differs.length > 0 ? 'odd amber' : undefined,
    cells: columns.map((column) => cells[index]![column]),
  }));
  return <Table title="Instances" columns={columns} rows={rows} />;
}

/**
 * By the titles of their columns.
 *
 * @param isCommon whether nothing is said of its state: all have the same, which the status on top explains
 */
function cellsOf(instance: FleetInstance, isCommon: boolean): Readonly<Record<string, ComponentChildren>> {
  const { id, version, startedAt, health, loaded, rates, latency, answeredAt, problem, note, differs } = instance;
  const [name, address] = nameOf(instance);
  const tone = toneOf(instance);
  const answered = answeredAt === null ? '' : `; answered last ${shortClock(secondsOf(answeredAt))}`;
  const wrong = health === null || isCommon ? [] : [health.store, health.rules, health.process];
  const texts = wrong.filter(({ state }) => state !== 'green').map(({ text }) => text);
  const subs = [address, ...(problem === null ? texts : [problem + answered]), note].filter(Boolean);
  const sub = subs.map((each) => <div key={each}>{shown(each)}</div>);
  const differing = health?.state === 'green' && differs.length > 0 ? 'differs' : STATES[tone];
  const state = problem !== null ? 'does not answer' : health === null ? 'not asked yet' : differing;
  const since = startedAt === null ? undefined : secondsOf(startedAt);
  return {
    Instance: <Named tone={tone} name={name} href={addressOf('live', { scope: scopeOf(instance) })} sub={sub} />,
    'State!': <Pill tone={tone} text={state} />,
    'Calls/s:': measure(rates?.calls),
    'Trend!!': id !== null && <Trend key={id} id={id} />,
    'Limited:': percent(limitedShare(rates)),
    '99 %, ms:': rates !== null && latency === null ? 'no calls' : measure(latency?.p99),
    'Rules!': compared(differs.includes('rules'), loaded?.version ?? (health === null ? '' : 'none')),
    'weir!': compared(differs.includes('version'), version ?? ''),
    'Runs since!': since !== undefined && `${shortClock(since)}, ${duration(Date.now() / 1000 - since)}`,
  };
}

/** The calls of an instance. */
function Trend({ id }: { readonly id: string }) {
  const { value: history } = useRecorded(id);
  return history === undefined ? <></> : <Sparkline history={history} values={history.rates.calls} />;
}

/** What may differ from most instances. */
function compared(isOther: boolean, text: string) {
  const short = shown(text.length > 40 ? `${text.slice(0, 12)}…` : text);
  return isOther ? <span class="mono unequal">≠ {short}</span> : <span class="mono">{short}</span>;
}
