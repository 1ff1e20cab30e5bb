import type { ComponentChildren } from 'preact';
import type { ExplainedDescriptor } from '../src/explain/explanation';
import type { CounterState } from '../src/operators/answers';
import { type Caller, canChange, counterName, isConcurrent, isMomentary, leftOf, mostOf } from './counters';
import { Icon, type Tone } from './icons';
import { refusal } from './live-events';
import { Card } from './parts';
import { addressOf } from './route';
import { useStore } from './store';
import { Code, clock, count, duration, placeText, secondsOf } from './text';

interface HelpProps {
  readonly query: Caller;
  readonly states: readonly CounterState[];
  readonly descriptor: ExplainedDescriptor;
  readonly onClear: (states: readonly CounterState[]) => void;
}

interface Advice {
  readonly tone: Tone;
  readonly title: string;
  readonly text: string;
  /** The rule file that has to be changed. */
  readonly place?: string;
  readonly action?: ComponentChildren;
}

/** What unblocks a caller, what does not, and what follows. */
export function CallerHelp(props: HelpProps) {
  const mayChange = useStore(refusal) === '';
  return (
    <Card title="What helps" columns={12}>
      <ul class="help">
        {advicesOf(props, mayChange).map(({ tone, title, text, place = '', action }) => (
          <li key={title} class={tone}>
            <Icon name={tone} />
            <div>
              <b>{title}</b> {text}
              {place !== '' && [' in ', <Code key="place" text={place} />, '.']}
              {action !== undefined && <p>{action}</p>}
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function advicesOf({ query, states, descriptor, onClear }: HelpProps, mayChange: boolean): readonly Advice[] {
  const { status, counter, rule, outcome } = descriptor;
  if (status === null) {
    return [{ tone: 'red', title: 'Restore the store:', text: 'until then, calls that it has to count fail.' }];
  }
  if (status.code === 'OK') {
    const why = counter === null ? `No limit counts this call: ${outcome}.` : 'Calls pass now.';
    const shadow = counter?.shadowMode === true ? ' The rule is in shadow mode: also calls over the limit pass.' : '';
    const useless = states.filter(canChange).map((state) => ({
      tone: 'none' as const,
      title: `Clearing ${counterName(state)} changes nothing now:`,
      text: `${count(leftOf(state))} of ${count(mostOf(state))} are left.`,
    }));
    return [{ tone: 'well', title: 'Nothing to unblock.', text: why + shadow }, ...useless];
  }
  if (outcome === 'denied') {
    const text = 'add a rule for this descriptor.';
    return [{ tone: 'lock', title: 'No rule matches, and on_unmatched denies that:', text }];
  }
  const place = placeText(rule?.place ?? null);
  const used = states.filter((state) => leftOf(state) === 0);
  if (used.some((state) => mostOf(state) === 0)) {
    const disabled = <button disabled>Clear…</button>;
    const text = 'a limit of 0 lets no call pass, also with a count of 0.';
    return [
      { tone: 'lock', title: 'Clearing cannot unblock:', text, ...(mayChange && { action: disabled }) },
      { tone: 'well', title: 'To unblock:', text: 'remove or change the rule', place },
    ];
  }
  const limit = String(2 * (counter?.requestsPerUnit ?? 1));
  const another = (
    <a class="button" href={addressOf('explain', { ...query, limit })}>
      Try another limit…
    </a>
  );
  return [
    ...used.map((state) => adviceOf(state, mayChange && (() => onClear([state])))),
    { tone: 'well', title: 'To unblock for longer:', text: 'raise the limit', place, action: another },
  ];
}

/** What helps against a limit that is used up. */
function adviceOf(state: CounterState, onClear: (() => void) | false): Advice {
  if (isConcurrent(state)) {
    const first = state.openReservations?.first[0]?.expiresAt;
    const text = first === undefined ? 'each frees a place.' : `the first expires at ${clock(secondsOf(first))}.`;
    return { tone: 'none', title: 'Settle or cancel open reservations:', text };
  }
  if (isMomentary(state)) {
    return { tone: 'none', title: 'Clearing is no use:', text: 'each second begins a new window.' };
  }
  const action = onClear !== false && <button onClick={onClear}>Clear {counterName(state)}…</button>;
  return { tone: 'amber', title: 'Clear:', text: effectOf(state), ...(action !== false && { action }) };
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
