import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { CounterState } from '../src/operators/answers';
import { effectOf } from './caller-help';
import { type Caller, type Change, cleared, countText, counterName, isBucket, mostOf } from './counters';
import { live } from './live-events';
import { Dialog, Facts, Field } from './parts';
import { useStore } from './store';
import { Text, count, limitText } from './text';

interface ChangeDialogProps {
  readonly query: Caller;
  readonly change: Change;
  readonly onConfirm: (change: Change) => void;
  readonly onClose: () => void;
}

/** Shows what is changed, from what to what, and what follows, before it is. */
export function ChangeDialog({ query, change: { states, value }, onConfirm, onClose }: ChangeDialogProps) {
  const [text, setText] = useState(String(value ?? ''));
  const [reason, setReason] = useState('');
  const { known } = useStore(live).event?.health.instances ?? { known: 1 };
  const isShared = (useStore(live).event?.health.store.servers.length ?? 0) > 0;
  const first = states[0]!;
  const isClear = value === null;
  const whom = known > 1 ? `all ${known} instances` : 'all instances';
  const what = states.length > 1 ? `the counters of all ${count(states.length)} limits` : counterName(first);
  const after = isClear ? undefined : Number(text);
  return (
    <Dialog title={`${isClear ? 'Clear' : 'Set'} ${what} of ${query.descriptor.slice(0, 80)}?`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm({ states, value: after ?? null, reason: reason.trim() });
        }}
      >
        {!isClear && (
          <Field
            label={isBucket(first) ? 'Tokens left' : 'Count'}
            type="number"
            required
            min={0}
            max={isBucket(first) ? cleared(first) : Number.MAX_SAFE_INTEGER}
            value={text}
            onText={setText}
          />
        )}
        <Facts
          facts={[
            ...states.flatMap((state) => effectsOf(state, after ?? cleared(state), isClear)),
            ['Where', isShared ? `In the store: for ${whom}, at once.` : 'In the memory of this instance.'],
            ['Log', 'The time, the name of your token, your address, the count before and after.'],
          ]}
        />
        <Field
          label="Why (goes into the log)"
          placeholder="ticket, or what was fixed"
          maxLength={256}
          value={reason}
          onText={setReason}
        />
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="danger">
            {isClear ? (states.length > 1 ? 'Clear counters' : 'Clear counter') : 'Set counter'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

type Fact = readonly [name: string, value: ComponentChildren];

function effectsOf(state: CounterState, after: number, isClear: boolean): readonly Fact[] {
  const change = (
    <>
      <b>
        {count(state.count)} → {countText(state, after)}
      </b>{' '}
      <Text text={isBucket(state) ? limitText(state) : `of ${limitText(state)}`} />
    </>
  );
  const effect = isClear || mostOf(state) === 0 ? effectOf(state) : undefined;
  return [
    [isBucket(state) ? 'Tokens' : 'Count', change],
    ['Effect', effect],
  ];
}
