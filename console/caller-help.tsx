import type { ComponentChildren } from 'preact';
import type { ExplainedDescriptor } from '../src/explain/explanation';
import type { CounterState } from '../src/operators/answers';
import {
  type Caller,
  type Change,
  canChange,
  counterName,
  isConcurrent,
  isMomentary,
  leftOf,
  mostOf,
} from './counters';
import { Icon, type Tone } from './icons';
import { refusal } from './live-events';
import { Card } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { Link, clock, count, duration, placeText, secondsOf, shown } from './text';

interface HelpProps {
  readonly query: Caller;
  readonly states: readonly CounterState[];
  readonly descriptor: ExplainedDescriptor;
  readonly onAsk: (change: Change) => void;
}

/** What it is about, in bold, and what follows it. */
type Advice = readonly [tone: Tone, title: string, text: string, action?: ComponentChildren];

/** What unblocks a caller, what does not, and what follows. */
export function CallerHelp(props: HelpProps) {
  const mayChange = useStore(refusal) === '';
  return (
    <Card title="What helps" columns={12}>
      <ul class="help">
        {advicesOf(props, mayChange).map(([tone, title, text, action]) => (
          <li key={title} class={tone}>
            <Icon name={tone} />
            <div>
              <b>{title}</b> {shown(text)}
              {action && <p>{action}</p>}
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function advicesOf({ query, states, descriptor, onAsk }: HelpProps, mayChange: boolean): readonly Advice[] {
  const { status, counter, rule, outcome } = descriptor;
  if (status === null) return [['red', 'Restore the store:', 'until then, calls that it has to count fail.']];
  if (status.code === 'OK') {
    const why = counter === null ? `No limit counts this call: ${outcome}.` : 'Calls pass now.';
    const shadow = counter?.shadowMode === true ? ' The rule is in shadow mode: also calls over the limit pass.' : '';
    const useless = states.filter(canChange).map((state): Advice => {
      const left = `${count(leftOf(state))} of ${count(mostOf(state))} are left.`;
      return ['none', `Clearing ${counterName(state)} changes nothing now:`, left];
    });
    return [['well', 'Nothing to unblock.', why + shadow], ...useless];
  }
  if (outcome === 'denied') {
    return [['lock', 'No rule matches, and on_unmatched denies that:', 'add a rule for this descriptor.']];
  }
  const place = rule === null || rule.place === null ? '' : ` in ${placeText(rule.place)}.`;
  const used = states.filter((state) => leftOf(state) === 0);
  if (used.some((state) => mostOf(state) === 0)) {
    const disabled = mayChange && <button disabled>Clear…</button>;
    return [
      ['lock', 'Clearing cannot unblock:', 'a limit of 0 lets no call pass, also with a count of 0.', disabled],
      ['well', 'To unblock:', `remove or change the rule${place}`],
    ];
  }
  const limit = String(2 * (counter?.requestsPerUnit ?? 1));
  const another = <Link kind="button" href={addressOf('explain', { ...query, limit })} text="Try another limit…" />;
  return [
    ...used.map((state) => adviceOf(state, mayChange ? onAsk : undefined)),
    ['well', 'To unblock for longer:', `raise the limit${place}`, another],
  ];
}

/** What helps against a limit that is used up. */
function adviceOf(state: CounterState, onAsk: HelpProps['onAsk'] | undefined): Advice {
  if (isConcurrent(state)) {
    const first = state.openReservations?.first[0]?.expiresAt;
    const text = first === undefined ? 'each frees a place.' : `the first expires at ${clock(secondsOf(first))}.`;
    return ['none', 'Settle or cancel open reservations:', text];
  }
  if (isMomentary(state)) return ['none', 'Clearing is no use:', 'each second begins a new window.'];
  const clear = onAsk && (
    <button onClick={() => onAsk({ states: [state], value: null })}>Clear {counterName(state)}…</button>
  );
  return ['amber', 'Clear:', effectOf(state), clear];
}

/** What follows when a counter is cleared. */
export function effectOf(state: CounterState): string {
  const more = mostOf(state) - leftOf(state);
  if (mostOf(state) === 0) return 'none: a limit of 0 lets no call pass.';
  if (more <= 0) return 'none: nothing is counted.';
  const end = secondsOf(state.windowEnd);
  const rest = end - Date.now() / 1000;
  const until = state.algorithm === null && rest > 0 ? ` until ${clock(end)}, in ${duration(rest)}` : '';
  const block = state.block === null ? '' : 'the block ends, and ';
  return `${block}${count(more)} more ${more === 1 ? 'hit passes' : 'hits pass'}${until}.`;
}
