import { useState } from 'preact/hooks';
import type { ExplainedDescriptor, Explanation } from '../src/explain/explanation';
import type { Offender } from '../src/limiter/offender';
import type { CounterChange, CounterState } from '../src/operators/answers';
import { type ApiError, useLooks } from './api';
import { Log } from './activity';
import { CallerHelp } from './caller-help';
import { happeningOf, useChanges } from './changes';
import { useFleet } from './fleet-answer';
import { ChangeDialog } from './change-dialog';
import { type Caller, type Change, carryOut, countText, isBucket, mostOf, useCounters } from './counters';
import { Icon, type Tone } from './icons';
import { Bar, Card, CopyButton, Facts, Failure, Named, Notice, Table, type TableRow } from './parts';
import { type Written, bodyOf, commandOf } from './request';
import { RuleChart } from './rule-chart';
import { addressOf } from './route';
import { Text, clock, count, duration, limitText, placeText, secondsOf } from './text';

interface DetailsProps {
  readonly query: Caller;
  /** What is known of how it was limited. */
  readonly offender: Offender | undefined;
  readonly asksToClear: boolean;
}

/** A caller: whether it passes, which limits count it, and what helps. */
export function CallerDetails({ query, offender, asksToClear }: DetailsProps) {
  const [changes, setChanges] = useState(0);
  const [made, setMade] = useState<readonly CounterChange[]>([]);
  const [error, setError] = useState<ApiError>();
  const [asked, setAsked] = useState<Change | 'clear' | undefined>(asksToClear ? 'clear' : undefined);
  const counters = useCounters(query, changes);
  const written: Written = { domain: query.domain, descriptors: [query.descriptor], hits: '', limit: '' };
  const explanation = useLooks<Explanation>('explanations', { method: 'POST', body: bodyOf(written) }).value;
  const states = counters.value ?? [];
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
  const change = asked === 'clear' ? (states.length > 0 ? { states, value: null } : undefined) : asked;
  const descriptor = explanation?.descriptors[0];
  return (
    <>
      <div class="c12 page-bar">
        <a class="narrow" href={addressOf('callers')}>
          ‹ All callers
        </a>
        <h1>
          <Text text={query.descriptor} />
        </h1>
        <span class="quiet">
          domain <Text text={query.domain} />
        </span>
        <span class="actions end-of-line">
          <CopyButton text={commandOf(written)} label="Copy as command" />
          <a class="button" href={addressOf('explain', { ...query })}>
            Explain a call
          </a>
        </span>
      </div>
      {counters.error !== undefined && counters.error.status !== 404 && <Failure error={counters.error} />}
      {error !== undefined && <Failure error={error} />}
      {made.length > 0 && (
        <Notice tone="well" title="Changed">
          {made.map((each) => (
            <p key={each.window}>
              {made.length > 1 && `${limitText(each)}: `}Changed from {count(each.countBefore)} to{' '}
              {countText(each, each.count)}.
            </p>
          ))}
        </Notice>
      )}
      {explanation !== undefined && <Verdict explanation={explanation} offender={offender} />}
      <div class="c8 grid top-aligned">
        {states.length > 0 && <Limits states={states} descriptor={descriptor} onAsk={setAsked} />}
        {states[0]?.rule && (
          <Card title={`All callers of ${states[0].rule.statisticsKey}`} columns={12} note="hits per second">
            <RuleChart statisticsKey={states[0].rule.statisticsKey} limits={states} />
          </Card>
        )}
      </div>
      <div class="c4 grid top-aligned">
        {descriptor !== undefined && (
          <CallerHelp
            query={query}
            states={states}
            descriptor={descriptor}
            onClear={(cleared) => setAsked({ states: cleared, value: null })}
          />
        )}
        <Changes query={query} />
        {states.length > 0 && <InStore states={states} />}
      </div>
      {change !== undefined && (
        <ChangeDialog
          query={query}
          change={change}
          onConfirm={(confirmed) => void confirm(confirmed)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

/** Whether it passes now, and how it was limited. */
function Verdict({
  explanation: { answer, error, descriptors },
  offender,
}: {
  readonly explanation: Explanation;
  readonly offender: Offender | undefined;
}) {
  const descriptor = descriptors[0]!;
  const { status, counter, otherCounters, rule, reason } = descriptor;
  const by = rule === null ? 'a limit of the request' : rule.statisticsKey;
  const lately =
    offender === undefined
      ? 'Not limited lately'
      : `${count(offender.limited)} ${offender.limited === 1 ? 'call' : 'calls'} ${offender.isShadow ? 'over the limit' : 'limited'} lately, by ${offender.rule || by}`;
  if (answer === null || status === null) {
    return (
      <Notice tone="red" title="Calls fail">
        <Text text={error?.message ?? reason} />.
      </Notice>
    );
  }
  const zero = [counter, ...otherCounters].find(
    (each) => each !== null && each.requestsPerUnit === 0 && each.algorithm === null,
  );
  const [tone, title]: readonly [Tone, string] =
    status.code === 'OK'
      ? ['well', counter === null ? 'Passes: no limit applies' : `Passes now. ${lately}`]
      : zero
        ? ['lock', `Blocked by rule ${by}: limit of ${limitText(zero)}`]
        : ['over', `Limited now, by ${by}`];
  return (
    <Notice tone={tone} title={<Text text={title} />}>
      <p>
        <Text text={reason} />
        {status.code === 'OVER_LIMIT' && !zero && counter !== null && <>, until {clock(secondsOf(counter.resetAt))}</>}.
        {status.code !== 'OK' && offender !== undefined && <> {lately}.</>}
      </p>
    </Notice>
  );
}

interface LimitsProps {
  readonly states: readonly CounterState[];
  readonly descriptor: ExplainedDescriptor | undefined;
  readonly onAsk: (change: Change) => void;
}

function Limits({ states, descriptor, onAsk }: LimitsProps) {
  return (
    <Card
      title="Why: the limits that count this caller"
      columns={12}
      end={
        states.length > 1 && (
          <button type="button" onClick={() => onAsk({ states, value: null })}>
            Clear all {count(states.length)} limits…
          </button>
        )
      }
    >
      <Table
        title="Limits"
        kind="limits"
        columns={['Limit', 'Count now', 'Used!', 'Begins again', 'Change']}
        rows={states.map((state, index) => ({ key: state.window, cells: cellsOf(state, index === 0, onAsk) }))}
      />
      {descriptor !== undefined && <Path descriptor={descriptor} />}
    </Card>
  );
}

function cellsOf(state: CounterState, isFirst: boolean, onAsk: LimitsProps['onAsk']): TableRow['cells'] {
  const { name, windowEnd, overdrawn, leased, isInLocalCache } = state;
  const most = mostOf(state);
  const rest = secondsOf(windowEnd) - Date.now() / 1000;
  const used = most === 0 ? 100 : (100 * (isBucket(state) ? most - state.count : state.count)) / most;
  return [
    <Named name={limitText(state)} sub={name} />,
    <>
      <b>{count(state.count)}</b> of {count(most)}
      {isBucket(state) && ' tokens'}
      {overdrawn !== null && overdrawn > 0 && <span class="sub">overdrawn by {count(overdrawn)} hits</span>}
      {leased !== null && leased > 0 && <span class="sub">{count(leased)} hits are held for later calls</span>}
      {isInLocalCache && <span class="sub">the local cache has it as over its limit</span>}
    </>,
    <Bar share={used} isFull={used >= 100} />,
    <>
      {clock(secondsOf(windowEnd))}
      {rest > 0 && <span class="sub">in {duration(rest)}</span>}
    </>,
    <span class="actions">
      <button
        type="button"
        data-key={isFirst ? 'c' : undefined}
        disabled={most === 0}
        title={most === 0 ? 'A limit of 0 lets no call pass, also with a count of 0' : undefined}
        onClick={() => onAsk({ states: [state], value: null })}
      >
        Clear…
      </button>
      <button type="button" onClick={() => onAsk({ states: [state], value: isBucket(state) ? state.count : 0 })}>
        Set…
      </button>
    </span>,
  ];
}

/** The rules that lead to the one that decides. */
function Path({ descriptor: { entries, rule } }: { readonly descriptor: ExplainedDescriptor }) {
  if (rule === null) return <></>;
  return (
    <p class="path foot">
      <span class="quiet">Decided by</span>
      {entries.map(({ key, value }, index) => (
        <span key={index} class="step">
          <Text text={`${key}=${value}`} />
        </span>
      ))}
      <Icon name="next" />
      <a class="step hit" href={addressOf('rules', { rule: rule.statisticsKey })}>
        <Text text={rule.statisticsKey} />
      </a>
      <span class="mono small quiet">
        <Text text={placeText(rule.place)} />
      </span>
    </p>
  );
}

/** Who has changed its counters, and why. */
function Changes({ query: { domain, descriptor } }: { readonly query: Caller }) {
  const isFleet = useFleet() !== undefined;
  const changes = useChanges().filter((each) => each.domain === domain && each.descriptor === descriptor);
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
    const removed = timeToLive === null ? '' : `, removed in ${duration(timeToLive)}`;
    return [
      [states.length > 1 ? window : 'Key', `${cacheKey}${removed}`],
      ['Open reservations', open !== null && open.count > 0 ? <Reservations open={open} /> : undefined],
    ] as const;
  });
  return (
    <Card title="In the store" columns={12}>
      <Facts facts={facts} />
    </Card>
  );
}

function Reservations({ open }: { readonly open: NonNullable<CounterState['openReservations']> }) {
  return (
    <>
      {count(open.count)}
      {open.first.map(({ id, hits, expiresAt, onExpiry }) => (
        <div key={`${id} ${expiresAt}`}>
          <Text text={id} />: {count(hits)} hits, {onExpiry === 'cancel' ? 'given back' : 'settled'} at{' '}
          {clock(secondsOf(expiresAt))}
        </div>
      ))}
      {open.count > open.first.length && 'and others'}
    </>
  );
}
