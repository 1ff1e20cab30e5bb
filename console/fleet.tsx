import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Fleet, FleetDifference, FleetInstance } from '../src/operators/live-answers';
import { counted } from '../src/text/counted';
import { useAnswer } from './api';
import { CallerTable } from './callers';
import { State, Todo } from './health-bar';
import { Numbers, RuleRates } from './live';
import { Answered, Table, TokenForm } from './parts';
import { addressOf } from './route';
import { Short, Text, Time, measure } from './text';

/** Milliseconds between two looks. */
const LOOK_INTERVAL = 5_000;

/** All instances as one. */
export function FleetPage() {
  const [looks, setLooks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setLooks((before) => before + 1), LOOK_INTERVAL);
    return () => clearInterval(timer);
  }, []);
  return <Answered answer={useAnswer<Fleet>('fleet', looks)} show={(fleet) => <All fleet={fleet} />} />;
}

function All({ fleet }: { readonly fleet: Fleet }) {
  const { instances, pending, omitted, differences, omittedDifferences, rates, latency, rules, offenders } = fleet;
  const away = instances.filter(({ problem }) => problem !== null).length;
  return (
    <>
      <p class="hint">
        {counted(instances.length, 'instance')}
        {away > 0 && `, of which ${away} ${away === 1 ? 'does' : 'do'} not answer`}
        {pending > 0 && `; ${pending} have not been asked yet`}
        {omitted > 0 && `; ${omitted} more are not asked`}.
        {instances.length === 1 && (
          <>
            {' '}
            <a href={addressOf('help', { of: 'docs/operators-api.md#the-fleet' })}>OPERATOR_PEERS names the others</a>.
          </>
        )}
      </p>
      <Differences differences={differences} omittedDifferences={omittedDifferences} />
      <Numbers rates={rates} latency={latency} />
      <Table
        title="Instances"
        columns={['Instance', 'State', 'Calls/s:', 'Over/s:!', '99 % within, ms:!', 'Rules!', 'Version!']}
      >
        {instances.map((instance, index) => (
          <Instance key={instance.address ?? index} instance={instance} />
        ))}
      </Table>
      <div class="columns">
        <Table title="Rules with the most hits" columns={['Rule', 'Hits/s:', 'Over/s:']}>
          {rules.hits.map((rule) => (
            <tr key={rule.statisticsKey}>
              <RuleRates rule={rule} />
            </tr>
          ))}
        </Table>
        {offenders === null ? (
          <TokenForm why="The operator token is needed to see what callers have sent." />
        ) : (
          <CallerTable title="Callers that are limited most" offenders={offenders} />
        )}
      </div>
    </>
  );
}

function Instance({ instance }: { readonly instance: FleetInstance }) {
  const { address, name, version, startedAt, health, loaded, rates, latency, answeredAt, problem, note, differs } =
    instance;
  return (
    <tr>
      <td class="text">
        <Short text={name ?? address ?? 'this one'} />
        <div class="hint">
          {address === null ? 'this one' : name !== null && <Short text={address} />}
          {startedAt !== null && (
            <span class="wide">
              , since <Time iso={startedAt} />
            </span>
          )}
        </div>
      </td>
      <td class="text">
        {problem !== null ? (
          <>
            <State state="red" words="does not answer" />
            <div class="hint">
              <Short text={problem} />
              {answeredAt !== null && (
                <div>
                  answered last <Time iso={answeredAt} />
                </div>
              )}
            </div>
          </>
        ) : health === null ? (
          <State state="unknown" words="not asked yet" />
        ) : (
          <>
            <State state={health.state} />
            {[health.store, health.rules, health.process]
              .filter(({ state }) => state !== 'green')
              .map(({ text, todo }) => (
                <div key={text} class="hint">
                  <Text text={text} />. <Todo todo={todo} />
                </div>
              ))}
            {note !== null && (
              <div class="hint">
                <Short text={note} />
              </div>
            )}
          </>
        )}
      </td>
      <td class="number">{measure(rates?.calls)}</td>
      <td class="number wide">{measure(rates?.over)}</td>
      <td class="number wide">{rates !== null && latency === null ? 'no calls' : measure(latency?.p99)}</td>
      <td class="text wide">
        <Differing is={differs.includes('rules')}>
          {loaded === null ? health && 'none' : <Short text={loaded.version} />}
        </Differing>
      </td>
      <td class="text wide">
        <Differing is={differs.includes('version')}>{version !== null && <Short text={version} />}</Differing>
        {differs.includes('settings') && <div class="differs">other settings</div>}
      </td>
    </tr>
  );
}

/** What differs from most instances. */
function Differing({ is, children }: { readonly is: boolean; readonly children: ComponentChildren }) {
  return is ? <span class="differs">≠ {children}</span> : <>{children}</>;
}

const NAMES: Readonly<Record<FleetDifference['aspect'], string>> = {
  rules: 'Rules',
  version: 'Version of weir',
  settings: 'Setting',
};

function Differences({ differences, omittedDifferences }: Pick<Fleet, 'differences' | 'omittedDifferences'>) {
  const odd = differences.filter(({ isExpected }) => !isExpected);
  if (odd.length === 0) return <></>;
  return (
    <section class="notice bad" role="alert">
      <h2>Instances differ</h2>
      <dl>
        {odd.map(({ aspect, name, isHidden, values }) => (
          <div key={`${aspect} ${name}`}>
            <dt>
              {NAMES[aspect]} {name}
            </dt>
            {values.map(({ value, instances }) => (
              <dd key={value}>
                <Text text={value ?? (isHidden ? 'shown with the operator token' : 'not set')} />:{' '}
                <Text text={instances.join(', ')} />
              </dd>
            ))}
          </div>
        ))}
      </dl>
      {omittedDifferences > 0 && <p>{counted(omittedDifferences, 'other setting')} differ.</p>}
    </section>
  );
}
