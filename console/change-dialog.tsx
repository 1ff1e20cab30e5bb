import { useState } from 'preact/hooks';
import type { CounterState } from '../src/operators/answers';
import { effectOf } from './caller-help';
import { type Caller, type Change, cleared, countText, counterName, isBucket, mostOf } from './counters';
import { live } from './live-events';
import { Dialog, Facts, Field } from './parts';
import { useStore } from './store';
import { count, limitText, shown } from './text';

interface ChangeDialogProps {
  readonly query: Caller;
  readonly change: Change;
  readonly onConfirm: (change: Change) => Promise<void>;
  readonly onClose: () => void;
}

/** Shows what is changed, from what to what, and what follows, before it is. */
export function ChangeDialog({ query, change: { states, value }, onConfirm, onClose }: ChangeDialogProps) {
  const [text, setText] = useState(String(value ?? ''));
  const [reason, setReason] = useState('');
  const { instances, store } = useStore(live).event?.health ?? {};
  const first = states[0]!;
  const isClear = value === null;
  const many = instances !== undefined && instances.known > 1 ? ` ${instances.known}` : '';
  const what = states.length > 1 ? `the counters of all ${count(states.length)} limits` : counterName(first);
  const after = isClear ? null : Number(text);
  const isShared = store !== undefined && store.servers.length > 0;
  const where = isShared ? `In the store: for all${many} instances, at once.` : 'In the memory of this instance.';
  function submit(event: Event): void {
    event.preventDefault();
    void onConfirm({ states, value: after, reason: reason.trim() });
  }
  return (
    <Dialog title={`${isClear ? 'Clear' : 'Set'} ${what} of ${query.descriptor.slice(0, 80)}?`} onClose={onClose}>
      <form onSubmit={submit}>
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
            ...states.flatMap((state) => effectsOf(state, after)),
            ['Where', where],
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
          <button class="danger">{isClear ? `Clear counter${states.length > 1 ? 's' : ''}` : 'Set counter'}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** @param after null: it is cleared */
function effectsOf(state: CounterState, after: number | null) {
  const change = <b>{`${count(state.count)} → ${countText(state, after ?? cleared(state))}`}</b>;
  const limit = shown(isBucket(state) ? limitText(state) : `of ${limitText(state)}`);
  const effect = after === null || mostOf(state) === 0 ? effectOf(state) : undefined;
  return [
    [isBucket(state) ? 'Tokens' : 'Count', [change, ' ', limit]],
    ['Effect', effect],
  ] as const;
}
