import type { ComponentChildren } from 'preact';
import type { ExplainedDescriptor } from '../src/explain/explanation';
import type { CounterState } from '../src/operators/answers';
import { type Caller, counterName, leftOf, mostOf } from './counters';
import { Icon, type Tone } from './icons';
import { Card } from './parts';
import { addressOf } from './route';
import { Text, clock, count, duration, placeText, secondsOf } from './text';

interface HelpProps {
  readonly query: Caller;
  readonly states: readonly CounterState[];
  readonly descriptor: ExplainedDescriptor;
  readonly onClear: (states: readonly CounterState[]) => void;
}

/** What unblocks a caller, what does not, and what follows. */
export function CallerHelp({ query, states, descriptor: { status, counter, rule, outcome }, onClear }: HelpProps) {
  const place = rule === null ? '' : placeText(rule.place);
  const isLimited = status?.code === 'OVER_LIMIT';
  const used = states.filter((state) => leftOf(state) === 0);
  const blocked = used.find((state) => mostOf(state) === 0);
  return (
    <Card title="What helps" columns={12}>
      <ul class="help">
        {status === null && (
          <Advice tone="red">
            <b>Restore the store:</b> until then, calls that it has to count fail.
          </Advice>
        )}
        {status !== null && !isLimited && (
          <Advice tone="well">
            <b>Nothing to unblock.</b> {counter === null ? `No limit counts this call: ${outcome}.` : 'Calls pass now.'}
            {counter?.shadowMode === true && ' The rule is in shadow mode: also calls over the limit pass.'}
          </Advice>
        )}
        {!isLimited &&
          states.map((state) => (
            <Advice key={state.window} tone="none">
              <b>Clearing {counterName(state)} changes nothing now:</b> {count(leftOf(state))} of {count(mostOf(state))}{' '}
              are left.
            </Advice>
          ))}
        {isLimited && outcome === 'denied' && (
          <Advice tone="lock">
            <b>No rule matches, and on_unmatched denies that:</b> add a rule for this descriptor.
          </Advice>
        )}
        {isLimited && blocked !== undefined && (
          <>
            <Advice tone="lock">
              <b>Clearing cannot unblock:</b> a limit of 0 lets no call pass, also with a count of 0.
              <br />
              <button type="button" disabled>
                Clear…
              </button>
            </Advice>
            <Advice tone="well">
              <b>To unblock:</b> remove or change the rule
              {place !== '' && (
                <>
                  {' '}
                  in <Place text={place} />
                </>
              )}
              .
            </Advice>
          </>
        )}
        {isLimited && blocked === undefined && (
          <>
            {used.map((state) => (
              <ClearAdvice key={state.window} state={state} onClear={() => onClear([state])} />
            ))}
            <Advice tone="well">
              <b>To unblock for longer:</b> raise the limit
              {place !== '' && (
                <>
                  {' '}
                  in <Place text={place} />
                </>
              )}
              .
              <br />
              <a
                class="button"
                href={addressOf('explain', { ...query, limit: String(2 * (counter?.requestsPerUnit ?? 1)) })}
              >
                Try another limit…
              </a>
            </Advice>
          </>
        )}
      </ul>
    </Card>
  );
}

function Place({ text }: { readonly text: string }) {
  return (
    <code>
      <Text text={text} />
    </code>
  );
}

function Advice({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <li class={tone}>
      <Icon name={tone} />
      <div>{children}</div>
    </li>
  );
}

function ClearAdvice({ state, onClear }: { readonly state: CounterState; readonly onClear: () => void }) {
  if (state.unit === 'SECOND' && state.unitMultiplier === 1 && state.algorithm === null) {
    return (
      <Advice tone="none">
        <b>Clearing is no use:</b> each second begins a new window.
      </Advice>
    );
  }
  return (
    <Advice tone="amber">
      <b>Clear:</b> {effectOf(state)}
      <br />
      <button type="button" onClick={onClear}>
        Clear {counterName(state)}…
      </button>
    </Advice>
  );
}

/** What follows when a counter is cleared. */
export function effectOf(state: CounterState): string {
  const more = mostOf(state) - leftOf(state);
  if (mostOf(state) === 0) return 'none: a limit of 0 lets no call pass.';
  if (more <= 0) return 'none: nothing is counted.';
  const end = secondsOf(state.windowEnd);
  const rest = end - Date.now() / 1000;
  const until = state.algorithm === null && rest > 0 ? ` until ${clock(end)}, in ${duration(rest)}` : '';
  return `${count(more)} more ${more === 1 ? 'hit passes' : 'hits pass'}${until}.`;
}
