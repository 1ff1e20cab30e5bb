import type { Offender } from '../src/limiter/offender';
import type { LiveEvent, LiveRule } from '../src/operators/live-answers';
import { live } from './live-events';
import { Sparkline, Table, TokenForm } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { Text, Time, count, measure } from './text';

type Read = (event: LiveEvent) => number | undefined;

const TILES: readonly (readonly [title: string, unit: string, read: Read])[] = [
  ['Within limits', 'hits/s', ({ rates }) => rates?.within],
  ['Near limits', 'hits/s', ({ rates }) => rates?.near],
  ['Over limits', 'hits/s', ({ rates }) => rates?.over],
  ['Over, allowed by shadow mode', 'hits/s', ({ rates }) => rates?.shadow],
  ['gRPC calls', 'per second', ({ rates }) => rates?.calls],
  ['Calls no rule matches', 'per second', ({ rates }) => rates?.noMatch],
  ['Invalid calls', 'per second', ({ rates }) => rates?.invalid],
  ['Store errors', 'per second', ({ rates }) => rates?.storeErrors],
  ['Latency, half of the calls', 'ms', ({ latency }) => latency?.p50],
  ['Latency, 99 % of the calls', 'ms', ({ latency }) => latency?.p99],
  ['Latency, 99.9 % of the calls', 'ms', ({ latency }) => latency?.p999],
];

export function LivePage() {
  const { events } = useStore(live);
  const event = events.at(-1);
  if (event === undefined) return <p class="hint">Waiting for the first event…</p>;
  return (
    <>
      <Loads event={event} />
      <div class="tiles">
        {TILES.map(([title, unit, read]) => (
          <section class="tile" key={title}>
            <h2>{title}</h2>
            <p>
              <b>{measure(read(event))}</b> {unit}
            </p>
            <Sparkline values={events.map(read)} />
          </section>
        ))}
      </div>
      <div class="columns">
        <Rules title="Rules with the most hits" rules={event.rules.hits} value="hits" events={events} />
        <Rules title="Rules with the most denials" rules={event.rules.denials} value="over" events={events} />
        <Offenders offenders={event.offenders} />
        <Store event={event} />
        {event.workers.length > 0 && <Workers workers={event.workers} />}
      </div>
    </>
  );
}

function Loads({ event: { loaded, rejected, health } }: { readonly event: LiveEvent }) {
  return (
    <>
      {rejected?.isNewest === true && (
        <div class="notice bad" role="alert">
          The newest rules were rejected (<Time iso={rejected.at} />
          ); {loaded === null ? 'no rules are active' : 'the rules before them stay active'}.{' '}
          <a href={addressOf('rules', { view: 'rejected' })}>What is wrong</a>
        </div>
      )}
      {!health.healthy && (
        <div class="notice bad" role="alert">
          Unhealthy: {health.unhealthy.join(', ') || 'starting'}.
        </div>
      )}
      {health.degraded.length > 0 && (
        <div class="notice bad" role="alert">
          {health.degraded.join(', ')}.
        </div>
      )}
      <p class="hint">
        {loaded === null ? (
          'No rules are loaded yet.'
        ) : (
          <>
            {count(loaded.rules)} rules from <Text text={loaded.source} />, loaded <Time iso={loaded.at} />.{' '}
            <a href={addressOf('rules', { view: 'changes' })}>What has changed</a>
          </>
        )}
        {rejected?.isNewest === false && (
          <>
            {' '}
            Last rejection: <Time iso={rejected.at} />.
          </>
        )}
      </p>
    </>
  );
}

interface RulesProps {
  readonly title: string;
  readonly rules: readonly LiveRule[];
  readonly value: 'hits' | 'over';
  readonly events: readonly LiveEvent[];
}

function Rules({ title, rules, value, events }: RulesProps) {
  if (rules.length === 0) {
    return (
      <section>
        <h2>{title}</h2>
        <p class="hint">None in the last seconds.</p>
      </section>
    );
  }
  const list = value === 'hits' ? 'hits' : 'denials';
  return (
    <Table title={title} columns={['Rule', 'Hits/s:', 'Over/s:', 'Two minutes']}>
      {rules.map(({ statisticsKey: key, hits, over }) => (
        <tr key={key}>
          <td>
            <a href={addressOf('rules', { rule: key })}>
              <Text text={key} />
            </a>
          </td>
          <td class="number">{measure(hits)}</td>
          <td class="number">{measure(over)}</td>
          <td>
            <Sparkline
              values={events.map(({ rules: of }) => of[list].find((rule) => rule.statisticsKey === key)?.[value])}
            />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Offenders({ offenders }: { readonly offenders: readonly Offender[] | null }) {
  if (offenders === null || offenders.length === 0) {
    return (
      <section>
        <h2>Callers that are limited most</h2>
        {offenders === null ? (
          <TokenForm why="The operator token is needed to see what callers have sent." />
        ) : (
          <p class="hint">None, or OFFENDERS_SIZE is 0.</p>
        )}
      </section>
    );
  }
  return (
    <Table title="Callers that are limited most" columns={['Caller', 'Rule', 'Limited calls:', 'Look into']}>
      {offenders.map(({ domain, rule, descriptor, isShadow, limited }) => (
        <tr key={`${domain} ${rule} ${descriptor}`}>
          <td>
            <Text text={descriptor} />
          </td>
          <td>
            <Text text={rule === '' ? `${domain}: a limit of the request` : rule} />
            {isShadow && ' (shadow mode)'}
          </td>
          <td class="number">{count(limited)}</td>
          <td>
            <a href={addressOf('explain', { domain, descriptor })}>Explain</a>{' '}
            <a href={addressOf('counters', { domain, descriptor })}>Counter</a>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Store({ event: { checks, health } }: { readonly event: LiveEvent }) {
  const { servers } = health.store;
  return (
    <>
      <Table title="Checks" columns={['Check', 'State']}>
        {checks.map(({ name, failure, note }) => (
          <tr key={name}>
            <td>{name}</td>
            <td class={failure === null ? 'good' : 'bad'}>{failure ?? note ?? 'passes'}</td>
          </tr>
        ))}
      </Table>
      {servers.length > 0 && (
        <Table title="Servers of the counter store" columns={['Server', 'Store', 'Circuit breaker']}>
          {servers.map(({ server, store, isOpen }) => (
            <tr key={`${store} ${server}`}>
              <td>
                <Text text={server} />
              </td>
              <td>{store}</td>
              <td class={isOpen ? 'bad' : 'good'}>{isOpen ? 'open: calls are not sent' : 'closed: calls are sent'}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function Workers({ workers }: Pick<LiveEvent, 'workers'>) {
  return (
    <Table title="Workers" columns={['Worker:', 'State', 'Connections:', 'Process:', 'Up, s:', 'Restarts:']}>
      {workers.map(({ worker, pid, isServing, isResponsive, connections, uptimeSeconds, restarts }) => (
        <tr key={worker}>
          <td class="number">{worker}</td>
          <td class={isServing && isResponsive ? 'good' : 'bad'}>
            {!isServing ? 'starting' : isResponsive ? 'serving' : 'not answering'}
          </td>
          <td class="number">{count(connections)}</td>
          <td class="number">{pid}</td>
          <td class="number">{count(uptimeSeconds)}</td>
          <td class="number">{count(restarts)}</td>
        </tr>
      ))}
    </Table>
  );
}
