import { useState } from 'preact/hooks';
import type { CounterChange, CounterState } from '../src/operators/answers';
import { type ApiError, call, useAnswer } from './api';
import { CallPicker, RecentCalls } from './call-picker';
import { Answered, Confirmation, Failure, Field } from './parts';
import { RuleChart } from './rule-chart';
import { addressOf, route } from './route';
import { useStore } from './store';
import { Text, Time, count, limitText } from './text';

interface Query {
  readonly domain: string;
  readonly descriptor: string;
  /** Of a rule with several limits, which one; undefined: the first. */
  readonly window?: string;
}

export function CountersPage() {
  const { parameters } = useStore(route);
  const query = { domain: parameters.get('domain') ?? '', descriptor: parameters.get('descriptor') ?? '' };
  const isChosen = query.domain !== '' && query.descriptor !== '';
  return (
    <>
      <QueryForm key={String(parameters)} query={query} />
      {isChosen ? (
        <div class="columns">
          <Counter key={addressOf('', query)} query={query} asksToClear={parameters.get('clear') === 'ask'} />
        </div>
      ) : (
        <>
          <p class="hint">Choose a caller by the descriptor of its calls, to see its count and to unblock it.</p>
          <RecentCalls page="counters" />
        </>
      )}
    </>
  );
}

function QueryForm({ query }: { readonly query: Query }) {
  const [domain, setDomain] = useState(query.domain);
  const [descriptor, setDescriptor] = useState(query.descriptor);
  return (
    <form
      class="fields"
      onSubmit={(event) => {
        event.preventDefault();
        location.hash = addressOf('counters', { domain, descriptor });
      }}
    >
      <CallPicker
        domain={domain}
        descriptor={descriptor}
        onPick={(pickedDomain, picked) => {
          setDomain(pickedDomain);
          setDescriptor(picked);
        }}
      />
      <Field
        label="Descriptor: key=value,key2=value2, or JSON"
        required
        size={40}
        value={descriptor}
        onText={setDescriptor}
      />
      <button>Look up</button>
    </form>
  );
}

function pathOf(query: Query): string {
  return `counters?${String(new URLSearchParams({ ...query }))}`;
}

interface CounterProps {
  readonly query: Query;
  readonly asksToClear?: boolean;
  /** The changes of all limits of the rule. */
  readonly changesOfAll?: number;
}

/** A change that was made. */
type Made = CounterChange & { readonly isCleared: boolean };

/** What is to be confirmed. */
interface Asked {
  /** Null: it is cleared. */
  readonly value: number | null;
  /** Whether all limits of the rule are changed. */
  readonly isAll: boolean;
}

/** A counter, and below it those of the other limits of its rule. */
function Counter({ query, asksToClear = false, changesOfAll = 0 }: CounterProps) {
  const [changes, setChanges] = useState(0);
  const [made, setMade] = useState<readonly Made[]>([]);
  const [error, setError] = useState<ApiError>();
  const [asked, setAsked] = useState<Asked | undefined>(asksToClear ? { value: null, isAll: true } : undefined);
  /** What was written; undefined: nothing yet. */
  const [text, setText] = useState<string>();
  const answer = useAnswer<CounterState>(pathOf(query), changes + changesOfAll);
  async function carryOut({ window: own, windows }: CounterState, { value, isAll }: Asked): Promise<void> {
    setAsked(undefined);
    setError(undefined);
    const done: Made[] = [];
    try {
      for (const window of isAll ? windows : [own]) {
        const changed = windows.length > 1 ? { ...query, window } : query;
        const init =
          value === null
            ? { method: 'DELETE' }
            : { method: 'PUT', body: JSON.stringify({ ...changed, descriptor: descriptorIn(query), count: value }) };
        const change = await call<CounterChange>(value === null ? pathOf(changed) : 'counters', init);
        done.push({ ...change, isCleared: value === null });
      }
    } catch (failure) {
      setError(failure as ApiError);
    }
    setMade(done);
    setChanges(changes + 1);
  }
  return (
    <Answered
      answer={answer}
      show={(state) => (
        <>
          <section aria-label={limitText(state)}>
            <h2>{limitText(state)}</h2>
            {error !== undefined && <Failure error={error} />}
            {made.length > 0 && (
              <div class="notice good" role="status">
                {made.map((change) => (
                  <p key={change.window}>
                    {made.length > 1 && `${limitText(change)}: `}Changed from {count(change.countBefore)} to{' '}
                    {countText(change, change.count)}.
                  </p>
                ))}
                <p>The log of the service has {made.length > 1 ? 'lines' : 'a line'} like</p>
                <pre tabIndex={0}>
                  {made
                    .map((change) => logLine(query, change, [change.countBefore, change.count], change.isCleared))
                    .join('\n')}
                </pre>
              </div>
            )}
            <Facts query={query} state={state} />
            <form
              onSubmit={(event) => {
                event.preventDefault();
                setAsked({ value: Number(text ?? cleared(state)), isAll: false });
              }}
            >
              <Field
                label={isBucket(state) ? 'Tokens left' : 'Count'}
                type="number"
                required
                min={0}
                max={isBucket(state) ? cleared(state) : Number.MAX_SAFE_INTEGER}
                value={text ?? cleared(state)}
                onText={setText}
              />
              <button>Set…</button>{' '}
              <button type="button" onClick={() => setAsked({ value: null, isAll: false })}>
                Clear…
              </button>{' '}
              {query.window === undefined && state.windows.length > 1 && (
                <button type="button" onClick={() => setAsked({ value: null, isAll: true })}>
                  Clear all {count(state.windows.length)} limits…
                </button>
              )}
            </form>
          </section>
          {query.window === undefined &&
            state.windows
              .filter((window) => window !== state.window)
              .map((window) => <Counter key={window} query={{ ...query, window }} changesOfAll={changes} />)}
          {asked !== undefined && (
            <ChangeConfirmation
              query={query}
              state={state}
              asked={asked}
              onConfirm={() => void carryOut(state, asked)}
              onCancel={() => setAsked(undefined)}
            />
          )}
        </>
      )}
    />
  );
}

interface ChangeConfirmationProps {
  readonly query: Query;
  readonly state: CounterState;
  readonly asked: Asked;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
}

function ChangeConfirmation({ query, state, asked, onConfirm, onCancel }: ChangeConfirmationProps) {
  const { value, isAll } = asked;
  const { windows } = state;
  const common = { action: value === null ? 'Clear' : 'Set', onConfirm, onCancel };
  if (isAll && windows.length > 1) {
    return (
      <Confirmation {...common} title={`Clear the counters of all ${count(windows.length)} limits?`}>
        <p>
          Those of <Text text={query.descriptor} /> in the present {windows.join(', ')}. Each goes to the log.
        </p>
      </Confirmation>
    );
  }
  return (
    <Confirmation
      {...common}
      title={value === null ? 'Clear this counter?' : `Set this counter to ${countText(state, value)}?`}
    >
      <p>
        Key{' '}
        <code>
          <Text text={state.cacheKey} />
        </code>
        : now {countText(state, state.count)}
        {value === null && `, then ${countText(state, cleared(state))}`}
      </p>
      <p>It goes to the log as</p>
      <pre tabIndex={0}>{logLine(query, state, [state.count, value ?? cleared(state)], value === null)}</pre>
    </Confirmation>
  );
}

/** The API has an object where it is JSON. */
function descriptorIn({ descriptor }: Query): unknown {
  return descriptor.startsWith('{') ? (JSON.parse(descriptor) as unknown) : descriptor;
}

// oxlint-disable-next-line max-params -- in the order of the line
function logLine(
  { domain, descriptor }: Query,
  state: CounterState,
  [before, after]: readonly [number, number],
  isCleared: boolean,
): string {
  const message = `msg="counter ${isCleared ? 'cleared' : 'set'} by an operator"`;
  const window = state.windows.length > 1 ? ` window=${state.window}` : '';
  return `${message} domain=${logged(domain)} descriptor=${logged(descriptor)}${window} before=${before} after=${after}`;
}

function isBucket({ algorithm }: CounterState): boolean {
  return algorithm === 'token_bucket';
}

/** What a counter has when it is cleared: a bucket is full then. */
function cleared(state: CounterState): number {
  return isBucket(state) ? (state.burst ?? 0) : 0;
}

function countText(state: CounterState, value: number): string {
  return `${count(value)}${isBucket(state) ? ' tokens left' : ''}`;
}

/** As in the log: in quotes where it is not a word. */
function logged(text: string): string {
  return /^[\w.:/-]+$/.test(text) ? text : JSON.stringify(text);
}

function Facts({ query, state }: { readonly query: Query; readonly state: CounterState }) {
  const { cacheKey, rule, requestsPerUnit, name, timeToLive, windowStart, windowEnd } = state;
  const { domain, descriptor } = query;
  return (
    <>
      <dl class="facts">
        <dt>{isBucket(state) ? 'Tokens left' : 'Count'}</dt>
        <dd>
          <b>{count(state.count)}</b> of {isBucket(state) ? `${count(cleared(state))} tokens` : limitText(state)}
          {name !== '' && (
            <>
              {' '}
              (<Text text={name} />)
            </>
          )}
        </dd>
        {!isBucket(state) && (
          <>
            <dt>Left</dt>
            <dd>{count(Math.max(0, requestsPerUnit - state.count))}</dd>
          </>
        )}
        {state.overdrawn !== null && state.overdrawn > 0 && (
          <>
            <dt>Overdrawn</dt>
            <dd>{count(state.overdrawn)} hits</dd>
          </>
        )}
        {state.leased !== null && (
          <>
            <dt>Leased</dt>
            <dd>{count(state.leased)} hits are held for later calls</dd>
          </>
        )}
        <dt>Window</dt>
        <dd>
          <Time iso={windowStart} /> to <Time iso={windowEnd} />
        </dd>
        <dt>Key</dt>
        <dd>
          <code>
            <Text text={cacheKey} />
          </code>
          {timeToLive !== null && <span class="hint"> removed by the store in {count(timeToLive)} s</span>}
        </dd>
        <dt>Rule</dt>
        <dd>
          {rule === null ? (
            'a limit of the request'
          ) : (
            <a href={addressOf('rules', { rule: rule.statisticsKey })}>
              <Text text={rule.statisticsKey} />
            </a>
          )}{' '}
          <a href={addressOf('explain', { domain, descriptor })}>Explain a call</a>
        </dd>
        <dt>Local cache</dt>
        <dd>{state.isInLocalCache ? 'has it as over its limit' : 'does not have it'}</dd>
        <OpenReservations open={state.openReservations} />
      </dl>
      {rule !== null && (
        <RuleChart
          statisticsKey={state.windows.length > 1 ? `${rule.statisticsKey}.${state.window}` : rule.statisticsKey}
        />
      )}
    </>
  );
}

/** The open reservations of a counter, the one that expires first at the top. */
function OpenReservations({ open }: { readonly open: CounterState['openReservations'] }) {
  if (open === null || open.count === 0) return <></>;
  return (
    <>
      <dt>Open reservations</dt>
      <dd>
        {count(open.count)}
        <ul>
          {open.first.map(({ id, hits, expiresAt, onExpiry }) => (
            <li key={`${id} ${expiresAt}`}>
              <Text text={id} />: {count(hits)} hits, {onExpiry === 'cancel' ? 'given back' : 'settled'} at{' '}
              <Time iso={expiresAt} />
            </li>
          ))}
          {open.count > open.first.length && <li>and others</li>}
        </ul>
      </dd>
    </>
  );
}
