import { useState } from 'preact/hooks';
import type { ExplainedCounter, ExplainedDescriptor, Explanation } from '../src/explain/explanation';
import type { Offender } from '../src/limiter/offender';
import type { CounterChange, CounterState } from '../src/operators/answers';
import { type ApiError, useAnswer } from './api';
import { Log } from './activity';
import { CallerHelp } from './caller-help';
import { happeningOf, useChanges } from './changes';
import { LOOK_INTERVAL, useFleet } from './fleet-answer';
import { ChangeDialog } from './change-dialog';
import {
  type Caller,
  type Change,
  canChange,
  carryOut,
  countText,
  isBucket,
  isConcurrent,
  isMomentary,
  leftOf,
  mostOf,
  useCounters,
} from './counters';
import { Icon, type Tone } from './icons';
import { refusal } from './live-events';
import { Bar, Card, CopyButton, Facts, Failure, Named, Notice, Table, type TableRow } from './parts';
import { type Written, bodyOf, commandOf } from './request';
import { RuleChart } from './rule-chart';
import { addressOf } from './route';
import { useStore } from './store';
import {
  Link,
  capital,
  clock,
  count,
  counted,
  duration,
  limitText,
  listed,
  percent,
  placeText,
  secondsOf,
  shown,
} from './text';
import { WatchedCalls } from './watch';

interface DetailsProps {
  readonly query: Caller;
  /** What is known of how it was limited. */
  readonly offender: Offender | undefined;
  readonly asksToClear: boolean;
}

/** A caller: whether it passes, which limits count it, and what helps. */
export function CallerDetails({ query, offender, asksToClear }: DetailsProps) {
  const mayChange = useStore(refusal) === '';
  const [changes, setChanges] = useState(0);
  const [made, setMade] = useState<readonly CounterChange[]>([]);
  const [error, setError] = useState<ApiError>();
  const [asked, setAsked] = useState<Change | 'clear' | undefined>(asksToClear ? 'clear' : undefined);
  const counters = useCounters(query, changes);
  const written: Written = { domain: query.domain, descriptors: [query.descriptor], hits: '', limit: '' };
  const body = bodyOf(written);
  const explanation = useAnswer<Explanation>('explanations', { body, every: LOOK_INTERVAL, version: changes }).value;
  const { value: states = [], error: unread } = counters;
  async function confirm(change: Change): Promise<void> {
    setAsked(undefined);
    setError(undefined);
    setMade([]);
    try {
      await carryOut(query, change, (done) => setMade((before) => [...before, done]));
    } catch (failure) {
      setError(failure as ApiError);
    }
    setChanges(changes + 1);
  }
  const clearable = mayChange ? states.filter(canChange) : [];
  const all = clearable.length > 0 ? { states: clearable, value: null } : undefined;
  const change = asked === 'clear' ? all : asked;
  const descriptor = explanation?.descriptors[0];
  const isFailing = explanation !== undefined && explanation.answer === null;
  const [first] = states;
  const verdict = explanation && verdictOf(explanation, offender);
  return (
    <>
      <div class="c12 page-bar">
        <Link kind="narrow" href={addressOf('callers')} text="‹ All callers" />
        <h1>{shown(query.descriptor)}</h1>
        <span class="quiet">domain {shown(query.domain)}</span>
        <span class="actions end-of-line">
          <CopyButton text={commandOf(written)} label="Copy as command" />
          <Link kind="button" href={addressOf('explain', { ...query })} text="Explain a call" />
        </span>
      </div>
      {unread !== undefined && unread.status !== 404 && !isFailing && <Failure error={unread} />}
      {error !== undefined && <Failure error={error} />}
      {made.length > 0 && (
        <Notice tone="well" title="Changed">
          {made.map(madeText)}
        </Notice>
      )}
      {verdict !== undefined && (
        <Notice tone={verdict[0]} title={verdict[1]}>
          <p>{shown(`${capital(verdict[2])}.`)}</p>
        </Notice>
      )}
      <div class="c8 grid top-aligned">
        {first !== undefined && <Limits states={states} descriptor={descriptor} onAsk={setAsked} />}
        <WatchedCalls query={query} />
        {first?.rule && (
          <Card title={`All callers of ${first.rule.statisticsKey}`} columns={12}>
            <RuleChart statisticsKey={first.rule.statisticsKey} limits={states} />
          </Card>
        )}
      </div>
      <div class="c4 grid top-aligned">
        {descriptor !== undefined && (
          <CallerHelp query={query} states={states} descriptor={descriptor} onAsk={setAsked} />
        )}
        <Changes query={query} version={changes} />
        {first !== undefined && <InStore states={states} />}
      </div>
      {change !== undefined && (
        <ChangeDialog query={query} change={change} onConfirm={confirm} onClose={() => setAsked(undefined)} />
      )}
    </>
  );
}

function madeText(change: CounterChange, _: number, all: readonly CounterChange[]) {
  const which = all.length > 1 ? `${limitText(change)}: ` : '';
  const text = `${which}Changed from ${count(change.countBefore)} to ${countText(change, change.count)}.`;
  return <p key={change.window}>{text}</p>;
}

/** Whether it passes now, and how it was limited. */
function verdictOf(
  { answer, error, descriptors }: Explanation,
  offender: Offender | undefined,
): readonly [Tone, title: string, text: string] {
  const { status, counter, otherCounters, rule, reason } = descriptors[0]!;
  if (answer === null || status === null) return ['red', 'Calls fail', error?.message ?? reason];
  const by = rule?.statisticsKey ?? 'a limit of the request';
  const lately = latelyText(offender, by);
  if (status.code === 'OK') {
    return ['well', counter === null ? 'Passes: no limit applies' : `Passes now. ${lately}`, reason];
  }
  const all = counter === null ? [] : [counter, ...otherCounters];
  const zero = all.find(({ requestsPerUnit, algorithm }) => requestsPerUnit === 0 && algorithm !== 'token_bucket');
  if (zero !== undefined) return ['lock', `Blocked by rule ${by}: limit of ${limitText(zero)}`, `${reason}. ${lately}`];
  if (counter?.block) {
    return ['over', `${blockedText(counter)}, by ${by}`, `A call over its limit has started the block. ${lately}`];
  }
  const until = counter === null || isConcurrent(counter) ? '' : `, until ${clock(secondsOf(counter.resetAt))}`;
  return ['over', `Limited now, by ${by}`, `${reason}${until}. ${lately}`];
}

function latelyText(offender: Offender | undefined, by: string): string {
  if (offender === undefined || offender.recent === 0) return 'Not limited lately';
  const { recent, isShadow, rule, since, share } = offender;
  return listed([
    `${counted(recent, 'call')} ${isShadow ? 'over the limit' : 'limited'} in the last 10 min`,
    `by ${rule || by}`,
    since !== null && `since ${clock(secondsOf(since))}`,
    share !== null && `${percent(100 * share)} of all calls of the rule`,
  ]);
}

/** `Blocked until 03:16:05, 4 min after 2 min`: the block before a longer one is said, too. */
function blockedText({ block, blockFor }: Pick<ExplainedCounter, 'block' | 'blockFor'>): string {
  const { until, seconds } = block!;
  const { first = seconds, most = seconds, factor = 1 } = blockFor ?? {};
  const before = seconds > first && seconds < most ? ` after ${duration(seconds / factor)}` : '';
  return `Blocked until ${clock(secondsOf(until))}, ${duration(seconds)}${before}`;
}

interface LimitsProps {
  readonly states: readonly CounterState[];
  readonly descriptor: ExplainedDescriptor | undefined;
  readonly onAsk: (change: Change) => void;
}

function Limits({ states, descriptor, onAsk }: LimitsProps) {
  const refused = useStore(refusal);
  const changeable = refused === '' ? states.filter(canChange) : [];
  const all = changeable.length > 1 && (
    <button onClick={() => onAsk({ states: changeable, value: null })}>
      Clear all {count(changeable.length)} limits…
    </button>
  );
  const rows = states.map((state) => {
    const controls = refused === '' ? [controlsOf(state, state === changeable[0], onAsk)] : [];
    return { key: state.window, cells: [...cellsOf(state), ...controls] };
  });
  const columns = ['Limit', 'Count now', 'Used!', 'Begins again', ...(refused === '' ? ['Change'] : [])];
  return (
    <Card title="Why: the limits that count this caller" columns={12} end={all}>
      <Table title="Limits" kind="limits" columns={columns} rows={rows} />
      {refused !== '' && <p class="foot">{refused}.</p>}
      {descriptor !== undefined && <Path descriptor={descriptor} />}
    </Card>
  );
}

function cellsOf(state: CounterState): TableRow['cells'] {
  const { name, overdrawn, leased, isInLocalCache, block } = state;
  const most = mostOf(state);
  const used = most === 0 ? 100 : (100 * (most - leftOf(state))) / most;
  const notes = [
    block !== null && 'blocked',
    overdrawn !== null && overdrawn > 0 && `overdrawn by ${count(overdrawn)} hits`,
    leased !== null && leased > 0 && `${count(leased)} hits are held for later calls`,
    isInLocalCache && 'the local cache has it as over its limit',
  ];
  const end = secondsOf(block?.until ?? state.windowEnd);
  const rest = end - Date.now() / 1000;
  const again = [clock(end), rest > 0 && <span class="sub nowrap">in {duration(rest)}</span>];
  return [
    <Named name={limitText(state)} sub={name} />,
    <>
      <b>{count(state.count)}</b> of {count(most)}
      {isBucket(state) ? ' tokens' : isConcurrent(state) ? ' open' : ''}
      {notes.map((note) => note && <span class="sub">{note}</span>)}
    </>,
    <Bar share={used} isFull={used >= 100} />,
    isConcurrent(state) ? 'when one ends' : isMomentary(state) ? 'each second' : again,
  ];
}

/** @param isFirst whether the key `c` is for it */
function controlsOf(state: CounterState, isFirst: boolean, onAsk: LimitsProps['onAsk']) {
  if (isConcurrent(state)) return <span class="sub">of reservations</span>;
  const useless = isMomentary(state) ? 'Each second begins a new window' : 'A limit of 0 lets no call pass';
  const isUseless = !canChange(state);
  return (
    <span class="actions">
      <button
        data-key={isFirst ? 'c' : undefined}
        disabled={isUseless}
        title={isUseless ? useless : undefined}
        onClick={() => onAsk({ states: [state], value: null })}
      >
        Clear…
      </button>
      <button onClick={() => onAsk({ states: [state], value: isBucket(state) ? state.count : 0 })}>Set…</button>
    </span>
  );
}

/** The rules that lead to the one that decides. */
function Path({ descriptor: { entries, rule } }: { readonly descriptor: ExplainedDescriptor }) {
  if (rule === null) return <></>;
  return (
    <p class="path foot">
      <span class="quiet">Decided by</span>
      {entries.map(({ key, value }) => (
        <span class="step">{shown(`${key}=${value}`)}</span>
      ))}
      <Icon name="next" />
      <Link kind="step hit" href={addressOf('rules', { rule: rule.statisticsKey })} text={rule.statisticsKey} />
      <span class="mono small quiet">{shown(placeText(rule.place))}</span>
    </p>
  );
}

/** Who has changed its counters, and why. */
function Changes({ query, version }: { readonly query: Caller; readonly version: number }) {
  const { domain, descriptor } = query;
  const isFleet = useFleet() !== undefined;
  const changes = useChanges(version).filter((each) => each.domain === domain && each.descriptor === descriptor);
  if (changes.length === 0) return <></>;
  const happenings = changes.toReversed().map((change) => ({ ...happeningOf(change, isFleet), link: undefined }));
  return (
    <Card title="Changes to this caller" columns={12}>
      <Log happenings={happenings} />
    </Card>
  );
}

/** What is rarely needed: keys in the store, and open reservations. */
function InStore({ states }: { readonly states: readonly CounterState[] }) {
  const facts = states.flatMap(({ window, cacheKey, timeToLive, openReservations: open }) => {
    const key = [states.length > 1 ? window : 'Key', cacheKey] as const;
    const removed = ['Removed in', timeToLive === null ? undefined : duration(timeToLive)] as const;
    if (open === null || open.count === 0) return [key, removed];
    const first = open.first.map(({ id, hits, expiresAt, onExpiry }) => {
      const end = `${onExpiry === 'cancel' ? 'given back' : 'settled'} at ${clock(secondsOf(expiresAt))}`;
      return <div>{shown(`${id}: ${counted(hits, 'hit')}, ${end}`)}</div>;
    });
    return [
      key,
      removed,
      ['Open reservations', [count(open.count), first, open.count > first.length && 'and others']] as const,
    ];
  });
  return (
    <Card title="In the store" columns={12}>
      <Facts facts={facts} />
    </Card>
  );
}
