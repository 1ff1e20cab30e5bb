import type { Fleet, FleetInstance } from '../src/operators/live-answers';
import { counted } from '../src/text/counted';
import { nameOf, scopeOf, toneOf, useFleet } from './fleet-answer';
import { limitedShare } from './cards';
import type { Tone } from './icons';
import { live } from './live-events';
import { Matrix, oddOnes, settingsText } from './matrix';
import { PageBar } from './page-bar';
import { Card, Named, Notice, Pill, Table, type TableRow } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { Text, duration, measure, percent, secondsOf, shortClock } from './text';

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
  const isCommon =
    new Set(instances.map(({ health }) => health?.state)).size === 1 &&
    instances[0]!.health?.state === event?.health.state;
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
          <Table
            title="Instances"
            columns={[
              'Instance',
              'State!',
              'Calls/s:',
              'Limited share:',
              '99 %, ms:',
              'Rules!',
              'weir!',
              'Runs since!',
            ]}
            rows={instances.map((instance) => rowOf(instance, isCommon))}
          />
        </Card>
        {differences.length > 0 && (
          <Matrix differences={differences} omitted={omittedDifferences} instances={instances} />
        )}
      </div>
    </>
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

/** @param isCommon whether all instances are in the same state, of which the status on top says more */
function rowOf(instance: FleetInstance, isCommon: boolean): TableRow {
  const { version, startedAt, health, loaded, rates, latency, answeredAt, problem, note, differs } = instance;
  const [name, address] = nameOf(instance);
  const scope = scopeOf(instance);
  const tone = toneOf(instance);
  const isOdd = differs.length > 0;
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
  const state =
    problem !== null
      ? 'does not answer'
      : health === null
        ? 'not asked yet'
        : health.state === 'green' && isOdd
          ? 'differs'
          : STATES[tone]!;
  const since = startedAt === null ? undefined : secondsOf(startedAt);
  return {
    key: scope,
    kind: problem !== null ? 'odd red' : isOdd ? 'odd amber' : undefined,
    cells: [
      <Named tone={tone} name={name} href={addressOf('live', { scope })} sub={sub} />,
      <Pill tone={tone} text={state} />,
      measure(rates?.calls),
      percent(limitedShare(rates)),
      rates !== null && latency === null ? 'no calls' : measure(latency?.p99),
      <Differing is={differs.includes('rules')} text={loaded?.version ?? (health === null ? '' : 'none')} />,
      <Differing is={differs.includes('version')} text={version ?? ''} />,
      since !== undefined && `${shortClock(since)}, ${duration(Date.now() / 1000 - since)}`,
    ],
  };
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
