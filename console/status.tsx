import type { HealthPart, ListedHealth, LiveEvent } from '../src/operators/live-answers';
import { useFleet } from './fleet-answer';
import { useRecorded } from './history';
import { outagesOf } from './happenings';
import { Icon, STATES, TONES } from './icons';
import { live } from './live-events';
import { addressOf } from './route';
import { useStore } from './store';
import { Link, capital, clock, count, measure, secondsOf, shortClock, shown, sinceText, spanText } from './text';

/** On top of every page: whether the service is well, since when, why not, and what to do. */
export function StatusBar() {
  const { state, event, reason } = useStore(live);
  const { value: history } = useRecorded();
  const fleet = useFleet();
  const isKnown = event !== undefined && state === 'live';
  const tone = isKnown ? TONES[event.health.state] : 'none';
  const since = isKnown ? sinceOf(event.health) : undefined;
  const last = outagesOf(history?.marks ?? []).findLast(({ until }) => until !== undefined);
  return (
    <section class={`status ${tone}`} aria-label="Health">
      <p class="overall" role="status">
        <Icon name={tone} />
        <b>{capital(tone === 'well' ? 'All is well' : STATES[tone])}</b>
        {since !== undefined && <span class="quiet">{sinceText(since)}</span>}
      </p>
      <div class="cause">
        {isKnown ? (
          causeOf(event.health, (fleet ?? event).rates)
        ) : (
          <p class="quiet">{whyNotKnown(state, reason, event)}</p>
        )}
        {tone === 'well' && last?.until !== undefined && (
          <span class="quiet">Last outage: store, {spanText(last.from, last.until)}</span>
        )}
      </div>
      {isKnown && <ul class="parts">{partsOf(event)}</ul>}
    </section>
  );
}

function whyNotKnown(state: string, reason = 'the service does not answer', event: LiveEvent | undefined): string {
  const why = capital(state === 'connecting' ? 'waiting for the service' : reason);
  return `${why}.${event === undefined ? '' : ` The last numbers are of ${clock(secondsOf(event.at))}.`}`;
}

/** When a state has begun: the first part that has it; when all is well, the last part that became so. */
function sinceOf({ state, store, rules, process, instances }: ListedHealth): number | undefined {
  const parts = [store, rules, process, instances].filter((part) => part.state === state && part.since !== null);
  const times = parts.map(({ since }) => secondsOf(since!));
  if (times.length === 0) return undefined;
  return state === 'green' ? Math.max(...times) : Math.min(...times);
}

/** What is wrong, the worst first. */
function causeOf({ store, rules, process, instances, state }: ListedHealth, rates: LiveEvent['rates']) {
  const failing = rates?.storeErrors ?? 0;
  // Other instances mostly have the same trouble.
  const own = [store, rules, process].filter((part) => part.state === state);
  const wrong = state === 'green' ? [] : own.length > 0 ? own : [instances];
  const why = <Link href={addressOf('rules', { view: 'rejected' })} text="What is wrong" />;
  return wrong.map(({ text, todo }) => (
    <p key={text}>
      {text === store.text && failing > 0 && <b>{measure(failing)} calls/s fail. </b>}
      <b class={failing > 0 ? 'plain' : ''}>{shown(capital(text))}.</b>
      {todo !== null && [' To do: ', <Link href={addressOf('help', { of: todo.link })} text={todo.text} />, '. ']}
      {text === rules.text && rules.isRejected && why}
    </p>
  ));
}

function partsOf(event: LiveEvent) {
  const { store, rules, process, instances } = event.health;
  const parts: readonly (readonly [name: string, part: HealthPart, text: string])[] = [
    ['Store', store, storeText(store)],
    ['Rules', rules, rulesText(event)],
    ...(process.state === 'green' ? [] : [['Process', process, ''] as const]),
    ...(instances.known > 1 ? [['Instances', instances, `${instances.seen} of ${instances.known}`] as const] : []),
  ];
  return parts.map(([name, { state, text: title }, text]) => (
    <li key={name} class={`part ${TONES[state]}`} title={title}>
      <Icon name={TONES[state]} />
      <b>{name}</b> {text}
    </li>
  ));
}

function storeText({ state, servers: [worst] }: ListedHealth['store']): string {
  if (state === 'red') return 'down';
  if (worst === undefined) return state === 'green' ? 'in memory' : '';
  return worst.latency === null ? '' : `${measure(worst.latency)} ms`;
}

function rulesText({ health, loaded }: LiveEvent): string {
  if (loaded === null) return 'none';
  if (health.rules.isRejected) return 'rejected';
  // Where there is more to be said, it has no room.
  return `${count(loaded.rules)}${health.state === 'green' ? `, loaded ${shortClock(secondsOf(loaded.at))}` : ''}`;
}
