import { useState } from 'preact/hooks';
import type {
  ExplainedCounter,
  ExplainedDescriptor,
  ExplainedStep,
  Explanation,
  RuleReference,
} from '../src/explain/explanation';
import { counted } from '../src/text/counted';
import { useAnswer } from './api';
import { CallPicker, RecentCalls } from './call-picker';
import { PageBar } from './page-bar';
import { Answered, Card, CopyButton, Field, Notice } from './parts';
import { type Written, bodyOf, commandOf, readPasted } from './request';
import { RuleChart } from './rule-chart';
import { addressOf, route } from './route';
import { useStore } from './store';
import { Text, Time, count, limitText, placeText } from './text';

export function ExplainPage() {
  const { parameters } = useStore(route);
  const written: Written = {
    domain: parameters.get('domain') ?? '',
    descriptors: parameters.getAll('descriptor'),
    hits: parameters.get('hits') ?? '',
    limit: parameters.get('limit') ?? '',
  };
  const isWritten = written.domain !== '';
  const problem = isWritten ? problemOf(() => bodyOf(written)) : undefined;
  const isSent = isWritten && problem === undefined;
  const init = { method: 'POST', body: isSent ? bodyOf(written) : '' };
  const answer = useAnswer<Explanation>(isSent ? 'explanations' : undefined, undefined, init);
  return (
    <>
      <PageBar title="Explain" text="What would be answered to a call, and why. Nothing is counted" />
      <div class="grid">
        {problem !== undefined && <Notice tone="red" title={`${problem}.`} />}
        {isSent && (
          <Answered
            answer={answer}
            show={(explanation) => <Verdict explanation={explanation} limit={written.limit} />}
          />
        )}
        {/* Filled in again when another request is in the address. */}
        <RequestForm key={String(parameters)} written={written} />
        <div class="c8 grid top-aligned">
          {answer.value !== undefined && <Steps explanation={answer.value} written={written} />}
          {!isSent && problem === undefined && <p class="c12 empty">Choose or paste a request.</p>}
        </div>
      </div>
    </>
  );
}

function ask({ domain, descriptors, hits, limit }: Written): void {
  location.hash = addressOf('explain', { domain, descriptor: descriptors, hits, limit });
}

/** What is wrong with what was written; undefined if nothing is. */
function problemOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function RequestForm({ written }: { readonly written: Written }) {
  const [domain, setDomain] = useState(written.domain);
  const [lines, setLines] = useState(written.descriptors.join('\n'));
  const [hits, setHits] = useState(written.hits);
  const [limit, setLimit] = useState(written.limit);
  const [pasted, setPasted] = useState('');
  const [problem, setProblem] = useState<string>();
  function submit(event: Event): void {
    event.preventDefault();
    const descriptors = lines.split('\n').filter((line) => line.trim() !== '');
    const request = { domain, descriptors, hits: hits.trim(), limit: limit.trim() };
    const found = problemOf(() => bodyOf(request));
    setProblem(found);
    if (found === undefined) ask(request);
  }
  function paste(text: string): void {
    setPasted(text);
    setProblem(text === '' ? undefined : problemOf(() => ask(readPasted(text))));
  }
  const [first = '', ...others] = lines.split('\n');
  return (
    <Card title="Request" columns={4}>
      <form class="pad fields" onSubmit={submit}>
        <label>
          <span>Paste a request in JSON, a command of grpcurl, or a line of the decision log</span>
          <textarea rows={2} value={pasted} onInput={(event) => paste(event.currentTarget.value)} />
        </label>
        <CallPicker
          domain={domain}
          descriptor={first}
          onPick={(picked, descriptor) => {
            setDomain(picked);
            setLines([descriptor, ...others].join('\n'));
          }}
        />
        <label>
          <span>Descriptors, one per line: key=value,key2=value2, or JSON</span>
          <textarea rows={2} required value={lines} onInput={(event) => setLines(event.currentTarget.value)} />
        </label>
        <div class="pair">
          <Field label="Hits" inputMode="numeric" placeholder="1" value={hits} onText={setHits} />
          <Field label="What would pass with limit" inputMode="numeric" value={limit} onText={setLimit} />
        </div>
        {problem !== undefined && (
          <p class="state red" role="alert">
            {problem}.
          </p>
        )}
        <button class="main">Explain</button>
      </form>
      <RecentCalls />
    </Card>
  );
}

interface VerdictProps {
  readonly explanation: Explanation;
  readonly limit: string;
}

/** What would be answered, and which limits are the reason. */
function Verdict({ explanation: { answer, error, at, descriptors }, limit }: VerdictProps) {
  const over = descriptors.filter(({ status }) => status?.code === 'OVER_LIMIT');
  const tone = answer === null ? 'red' : answer.overallCode === 'OK' ? 'well' : 'over';
  return (
    <Notice tone={tone} title={answer === null ? 'No answer' : answer.overallCode}>
      <p>
        {answer === null ? `The call would fail: ${error?.message}` : answer.reason}. <Time iso={at} />
      </p>
      {over.map(({ entries, reason, counter }) => (
        <p key={textOf(entries)}>
          <Text text={textOf(entries)} />: <Text text={reason} />
          {counter !== null && (
            <>
              {' '}
              ({limitText(counter)}), until <Time iso={counter.resetAt} />
            </>
          )}
        </p>
      ))}
      {limit !== '' && (
        <p>With a limit of {count(Number(limit))} instead of each limit, for the counts of the present windows.</p>
      )}
    </Notice>
  );
}

function textOf(entries: ExplainedDescriptor['entries']): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(', ');
}

interface StepsProps {
  readonly explanation: Explanation;
  readonly written: Written;
}

function Steps({ explanation: { domain, descriptors }, written }: StepsProps) {
  return (
    <>
      {descriptors.map((descriptor, index) => (
        <Descriptor
          key={index}
          descriptor={descriptor}
          query={{ domain, descriptor: written.descriptors[index] ?? '' }}
          number={index + 1}
        />
      ))}
      <Card title="As a command" columns={12} end={<CopyButton text={commandOf(written)} label="Copy the command" />}>
        <pre class="foot" tabIndex={0}>
          {commandOf(written)}
        </pre>
      </Card>
    </>
  );
}

interface DescriptorProps {
  readonly descriptor: ExplainedDescriptor;
  /** As it was written. */
  readonly query: { readonly domain: string; readonly descriptor: string };
  readonly number: number;
}

function Descriptor({ descriptor, query, number }: DescriptorProps) {
  const { entries, steps, outcome, rule, replacedBy, nearest, counter, otherCounters, status, reason } = descriptor;
  return (
    <Card title={`Descriptor ${number}`} columns={12} note={<Text text={textOf(entries)} />}>
      <ol class="steps pad">
        <li>
          Domain <Text text={query.domain} />:{' '}
          {outcome === 'unknown domain' ? 'the rules do not have it' : 'the rules have it'}
        </li>
        {steps.map((step, index) => (
          <Step key={index} step={step} />
        ))}
        <li>
          {rule === null && (outcome === 'override' ? 'Limit of the request' : 'No rule')}
          {rule !== null && (
            <>
              Rule <Reference rule={rule} />
            </>
          )}
          {replacedBy !== null && (
            <>
              , replaced by <Reference rule={replacedBy} />
            </>
          )}
          {nearest !== null && (
            <>
              . The nearest is {nearest.rule !== null && <Reference rule={nearest.rule} />}:{' '}
              <Text text={nearest.difference} />
            </>
          )}
        </li>
        {(counter === null ? [] : [counter, ...otherCounters]).map((each) => (
          <>
            <li>
              Key{' '}
              <code>
                <Text text={each.cacheKey} />
              </code>
            </li>
            <li>
              <CountOf counter={each} />;{' '}
              {each.openReservations !== null &&
                each.openReservations > 0 &&
                `${counted(each.openReservations, 'open reservation')}; `}
              {each.algorithm === null ? 'the window ends' : 'until'} <Time iso={each.resetAt} />
              {each.isInLocalCache && '; the local cache has it as over its limit'}
              {each.answeredByPolicy !== null && `; the policy ${each.answeredByPolicy} answers`}
            </li>
          </>
        ))}
        <li class={`state ${status === null ? 'none' : status.code === 'OK' ? 'well' : 'over'}`}>
          {status?.code ?? 'No verdict'}: <Text text={reason} />
          {status !== null && counter !== null && `; ${count(status.limitRemaining)} left`}
        </li>
      </ol>
      {counter !== null && (
        <p class="actions foot">
          <a class="button" href={addressOf('callers', query)}>
            Counter
          </a>
          <a class="button" href={addressOf('callers', { ...query, clear: 'ask' })}>
            Clear…
          </a>
        </p>
      )}
      {rule !== null && counter !== null && (
        <RuleChart statisticsKey={rule.statisticsKey} limits={[counter, ...otherCounters]} />
      )}
    </Card>
  );
}

/** What is counted before the call and after it; of a bucket, its tokens. */
function CountOf({ counter }: { readonly counter: ExplainedCounter }) {
  const { count: before, countAfter: after, overdrawn, leased, algorithm, burst } = counter;
  const isBucket = algorithm === 'token_bucket' && burst !== null && before !== null;
  return (
    <>
      {isBucket ? 'Tokens left' : 'Count'}{' '}
      {before === null ? 'not read' : count(isBucket ? Math.max(0, burst - before) : before)}
      {overdrawn !== null && overdrawn > 0 && `, overdrawn by ${count(overdrawn)}`}
      {leased !== null && leased > 0 && `, of which ${count(leased)} are leased here`}
      {after !== null && `, then ${count(isBucket ? Math.max(0, burst - after) : after)}`}, of {limitText(counter)}
    </>
  );
}

function Step({ step: { key, value, candidates, omitted, otherValues, keys } }: { readonly step: ExplainedStep }) {
  return (
    <li>
      Entry <Text text={`${key}=${value}`} />
      {candidates.length === 0 && (
        <>
          : no rule
          {keys.length > 0 && (
            <>
              ; the keys here are <Text text={keys.join(', ')} />
            </>
          )}
        </>
      )}
      <ul>
        {candidates.map(({ rule, outcome }, index) => (
          <li key={index}>
            <Reference rule={rule} />: {outcome}
          </li>
        ))}
      </ul>
      {omitted > 0 && <p class="quiet">and {count(omitted)} more</p>}
      {otherValues > 0 && <p class="quiet">another value: {counted(otherValues, 'rule')} of the key</p>}
    </li>
  );
}

function Reference({ rule: { statisticsKey, place } }: { readonly rule: RuleReference }) {
  return (
    <>
      <a href={addressOf('rules', { rule: statisticsKey })}>
        <Text text={statisticsKey} />
      </a>
      {place !== null && (
        <span class="quiet">
          {' '}
          (<Text text={placeText(place)} />)
        </span>
      )}
    </>
  );
}
