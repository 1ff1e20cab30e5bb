import type { HealthPart, ListedHealth, LiveEvent } from '../src/operators/live-answers';
import { recordedOf } from './history';
import { outagesOf } from './happenings';
import { Icon, TONES, type Tone } from './icons';
import { live } from './live-events';
import { addressOf } from './route';
import { useStore } from './store';
import {
  Link,
  Text,
  clock,
  count,
  measure,
  percent,
  secondsOf,
  shareOf,
  shortClock,
  sinceText,
  spanText,
} from './text';

const WORDS: Readonly<Record<Tone, string>> = {
  ...{ well: 'All is well', amber: 'Impaired', red: 'Failing', none: 'Not known', over: '', lock: '' },
};

/** What to do, with a link to where more is said. */
export function Todo({ todo }: Pick<HealthPart, 'todo'>) {
  if (todo === null) return <></>;
  return <a href={addressOf('help', { of: todo.link })}>{todo.text}</a>;
}

/** On top of every page: whether the service is well, since when, why not, and what to do. */
export function StatusBar() {
  const { state, event, reason } = useStore(live);
  const { value: history } = recordedOf().use();
  if (event === undefined || state !== 'live') {
    const why = state === 'connecting' ? 'waiting for the service' : (reason ?? 'the service does not answer');
    return (
      <section class="status none" aria-label="Health">
        <p class="overall" role="status">
          <Icon name="none" />
          <b>Not known</b>
        </p>
        <p class="cause quiet">
          {capital(why)}.{event !== undefined && ` The last numbers are of ${clock(secondsOf(event.at))}.`}
        </p>
      </section>
    );
  }
  const { health } = event;
  const { seen, known } = health.instances;
  const tone = TONES[health.state];
  const last = outagesOf(history?.marks ?? []).findLast(({ until }) => until !== undefined);
  const since = sinceOf(health);
  return (
    <section class={`status ${tone}`} aria-label="Health">
      <p class="overall" role="status">
        <Icon name={tone} />
        <b>{WORDS[tone]}</b>
        {since !== undefined && <span class="quiet">{sinceText(since)}</span>}
      </p>
      <div class="cause">
        <Cause health={health} failing={shareOf(event.rates?.storeErrors, event.rates?.calls)} />
        {tone === 'well' && last?.until !== undefined && (
          <span class="quiet">Last outage: store, {spanText(last.from, last.until)}</span>
        )}
      </div>
      <ul class="parts">
        <Part name="Store" part={health.store} text={storeText(health.store)} />
        <Part name="Rules" part={health.rules} text={rulesText(event)} />
        {health.process.state !== 'green' && <Part name="Process" part={health.process} text="" />}
        {known > 1 && <Part name="Instances" part={health.instances} text={`${seen} of ${known}`} />}
      </ul>
    </section>
  );
}

/** When a state has begun: the first part that has it; when all is well, the last part that became so. */
function sinceOf({ state, store, rules, process, instances }: ListedHealth): number | undefined {
  const parts = [store, rules, process, instances].filter((part) => part.state === state && part.since !== null);
  const times = parts.map(({ since }) => secondsOf(since!));
  if (times.length === 0) return undefined;
  return state === 'green' ? Math.max(...times) : Math.min(...times);
}

/** What is wrong, the worst first. */
function Cause({ health, failing = 0 }: { readonly health: ListedHealth; readonly failing: number | undefined }) {
  // Other instances mostly have the same trouble.
  const own = [health.store, health.rules, health.process].filter(({ state }) => state === health.state);
  const wrong = health.state === 'green' ? [] : own.length > 0 ? own : [health.instances];
  return (
    <>
      {wrong.map((part) => (
        <p key={part.text}>
          {part === health.store && failing > 0 && <b>{percent(failing)} of gRPC calls fail. </b>}
          <b class={failing > 0 ? 'plain' : ''}>
            <Text text={capital(part.text)} />.
          </b>
          {part.todo !== null && [' To do: ', <Todo key="todo" todo={part.todo} />, '.']}
          {part === health.rules &&
            health.rules.isRejected && [
              ' ',
              <Link key="why" href={addressOf('rules', { view: 'rejected' })} text="What is wrong" />,
            ]}
        </p>
      ))}
    </>
  );
}

function storeText({ state, servers }: ListedHealth['store']): string {
  if (state === 'red') return 'down';
  const [worst] = servers;
  if (worst === undefined) return state === 'green' ? 'in memory' : '';
  return worst.latency === null ? '' : `${measure(worst.latency)} ms`;
}

function rulesText({ health, loaded }: LiveEvent): string {
  if (loaded === null) return 'none';
  if (health.rules.isRejected) return 'rejected';
  // Where there is more to be said, it has no room.
  return `${count(loaded.rules)}${health.state === 'green' ? `, loaded ${shortClock(secondsOf(loaded.at))}` : ''}`;
}

interface PartProps {
  readonly name: string;
  readonly part: HealthPart;
  readonly text: string;
}

function Part({ name, part, text }: PartProps) {
  const tone = TONES[part.state];
  return (
    <li class={`part ${tone}`} title={part.text}>
      <Icon name={tone} />
      <b>{name}</b> {text}
    </li>
  );
}

/** Names stay as they are: `weir-1 is red`. */
function capital(sentence: string): string {
  return /^\S+ is /.test(sentence) ? sentence : sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
