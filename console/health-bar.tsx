import type { ComponentChildren } from 'preact';
import type { HealthPart, HealthState, ListedHealth } from '../src/operators/live-answers';
import { live } from './live-events';
import { Table } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { Short, Text, count, measure } from './text';

/** Colours are not needed to tell them apart. */
const SIGNS: Readonly<Record<HealthState, string>> = { green: '✓', amber: '!', red: '✕', unknown: '?' };
const WORDS: Readonly<Record<HealthState, string>> = {
  green: 'well',
  amber: 'impaired',
  red: 'failing',
  unknown: 'not known',
};
const ALL: Readonly<Record<HealthState, string>> = {
  green: 'All is well',
  amber: 'Impaired',
  red: 'Failing',
  unknown: 'Not known',
};

/** A state with its sign, and in words. */
export function State({ state, words = WORDS[state] }: { readonly state: HealthState; readonly words?: string }) {
  return (
    <span class={`state ${state}`}>
      <span class="sign" aria-hidden="true">
        {SIGNS[state]}
      </span>{' '}
      {words}
    </span>
  );
}

/** What to do, with a link to where more is said. */
export function Todo({ todo }: Pick<HealthPart, 'todo'>) {
  if (todo === null) return <></>;
  return <a href={addressOf('help', { of: todo.link })}>{todo.text}</a>;
}

/** On top of every page: whether the service is well, part by part. */
export function HealthBar() {
  const { state, event, reason } = useStore(live);
  if (event === undefined || state !== 'live') {
    return (
      <section class="health unknown" aria-label="Health">
        <p class="overall" role="status">
          <State state="unknown" words={ALL.unknown} />
          {state === 'connecting' ? ': waiting for the service.' : `: ${reason ?? 'the service does not answer'}.`}
        </p>
      </section>
    );
  }
  const { health } = event;
  return (
    <section class={`health ${health.state}`} aria-label="Health">
      <p class="overall" role="status">
        <State state={health.state} words={ALL[health.state]} />
      </p>
      <dl>
        <Part name="Store" part={health.store} />
        <Part name="Rules" part={health.rules}>
          {health.rules.isRejected && <a href={addressOf('rules', { view: 'rejected' })}>What is wrong</a>}
        </Part>
        <Part name="Process" part={health.process} />
        <Part name="Instances" part={health.instances}>
          {health.instances.known > 1 && <a href={addressOf('fleet')}>All instances</a>}
        </Part>
      </dl>
      {health.store.servers.length > 1 && <Servers store={health.store} />}
    </section>
  );
}

interface PartProps {
  readonly name: string;
  readonly part: HealthPart;
  readonly children?: ComponentChildren;
}

function Part({ name, part: { state, text, todo }, children }: PartProps) {
  return (
    <div class={`part ${state}`}>
      <dt>
        {name} <State state={state} />
      </dt>
      <dd>
        <Text text={text} />. <Todo todo={todo} />
        {todo !== null && Boolean(children) && ' · '}
        {children}
      </dd>
    </div>
  );
}

function Servers({ store: { servers, policy } }: Pick<ListedHealth, 'store'>) {
  return (
    <details>
      <summary>
        {count(servers.length)} servers of the store{policy !== null && `, policy ${policy}`}
      </summary>
      <Table title="Servers of the counter store" columns={['Server', 'Requests/s:', 'Failed/s:', 'Mean, ms:']}>
        {servers.map(({ server, store, state, text, todo, requests, errors, latency }) => (
          <tr key={`${store} ${server}`}>
            <td class="text">
              <Short text={store === '' ? server : `${server} (${store})`} />
              <div class="hint">
                <State state={state} words={text} />. <Todo todo={todo} />
              </div>
            </td>
            <td class="number">{measure(requests)}</td>
            <td class="number">{measure(errors)}</td>
            <td class="number">{latency === null ? 'no requests' : measure(latency)}</td>
          </tr>
        ))}
      </Table>
    </details>
  );
}
