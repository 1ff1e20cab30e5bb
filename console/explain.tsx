import { useState } from 'preact/hooks';
import type {
  ExplainedCounter,
  ExplainedDescriptor,
  ExplainedStep,
  Explanation,
  RuleReference,
} from '../src/explain/explanation';
import { useAnswer } from './api';
import { useCall } from './call-form';
import { live, refusal } from './live-events';
import { PageBar } from './page-bar';
import { Answered, Card, CopyButton, Field, Notice } from './parts';
import { type Written, bodyOf, commandOf, readPasted } from './request';
import { RuleChart } from './rule-chart';
import { addressOf, route } from './route';
import { useStore } from './store';
import { Code, Link, Text, clock, count, counted, limitText, placeText, secondsOf } from './text';

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
          {answer.value?.descriptors.map((descriptor, index) => (
            <Descriptor
              key={index}
              descriptor={descriptor}
              query={{ domain: written.domain, descriptor: written.descriptors[index] ?? '' }}
              number={index + 1}
            />
          ))}
          {answer.value !== undefined && <Command text={commandOf(written)} />}
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
  const call = useCall({ domain: written.domain, lines: written.descriptors.join('\n') });
  const [hits, setHits] = useState(written.hits);
  const [limit, setLimit] = useState(written.limit);
  const [pasted, setPasted] = useState('');
  const [problem, setProblem] = useState<string>();
  function submit(event: Event): void {
    event.preventDefault();
    const descriptors = call.lines.split('\n').filter((line) => line.trim() !== '');
    const request = { domain: call.domain, descriptors, hits: hits.trim(), limit: limit.trim() };
    const found = problemOf(() => bodyOf(request));
    setProblem(found);
    if (found === undefined) ask(request);
  }
  function paste(text: string): void {
    setPasted(text);
    setProblem(text === '' ? undefined : problemOf(() => ask(readPasted(text))));
  }
  return (
    <Card title="Request" columns={4}>
      <form class="pad fields" onSubmit={submit}>
        <label>
          <span>Paste a request in JSON, a command of grpcurl, or a line of the decision log</span>
          <textarea rows={2} value={pasted} onInput={(event) => paste(event.currentTarget.value)} />
        </label>
        {call.fields}
        <label>
          <span>Descriptors, one per line: key=value,key2=value2, or JSON</span>
          <textarea
            rows={2}
            required
            value={call.lines}
            onInput={(event) => call.setLines(event.currentTarget.value)}
          />
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

/** The callers that were limited most lately, each linked to its explanation. */
function RecentCalls() {
  const offenders = useStore(live).event?.offenders ?? [];
  return (
    <>
      <div class="head line">
        <h3>Callers limited lately</h3>
      </div>
      {offenders.length === 0 && (
        <p class="empty">None that may be shown. Calls within their limits are not recorded.</p>
      )}
      {offenders.map(({ domain, rule, descriptor }) => (
        <p key={`${domain} ${rule} ${descriptor}`} class="entry">
          <Link kind="who" href={addressOf('explain', { domain, descriptor })} text={`${domain}: ${descriptor}`} />
        </p>
      ))}
    </>
  );
}

function Command({ text }: { readonly text: string }) {
  return (
    <Card title="As a command" columns={12} end={<CopyButton text={text} label="Copy the command" />}>
      <pre class="foot" tabIndex={0}>
        {text}
      </pre>
    </Card>
  );
}

/** What would be answered, and which limits are the reason. */
function Verdict({ explanation, limit }: { readonly explanation: Explanation; readonly limit: string }) {
  const { answer, error, at, descriptors } = explanation;
  const over = descriptors.filter(({ status }) => status?.code === 'OVER_LIMIT');
  const tone = answer === null ? 'red' : answer.overallCode === 'OK' ? 'well' : 'over';
  const reason = answer === null ? `The call would fail: ${error?.message}` : answer.reason;
  return (
    <Notice tone={tone} title={answer?.overallCode ?? 'No answer'}>
      <p>
        {reason}. {clock(secondsOf(at))}
      </p>
      {over.map((each) => (
        <p key={textOf(each)}>
          <Text text={`${textOf(each)}: ${each.reason}`} />
          {each.counter !== null && ` (${limitText(each.counter)}), until ${clock(secondsOf(each.counter.resetAt))}`}
        </p>
      ))}
      {limit !== '' && (
        <p>With a limit of {count(Number(limit))} instead of each limit, for the counts of the present windows.</p>
      )}
    </Notice>
  );
}

function textOf({ entries }: Pick<ExplainedDescriptor, 'entries'>): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(', ');
}

interface DescriptorProps {
  readonly descriptor: ExplainedDescriptor;
  /** As it was written. */
  readonly query: { readonly domain: string; readonly descriptor: string };
  readonly number: number;
}

function Descriptor({ descriptor, query, number }: DescriptorProps) {
  const { steps, outcome, rule, replacedBy, nearest, counter, otherCounters, status, reason } = descriptor;
  const mayChange = useStore(refusal) === '';
  const counters = counter === null ? [] : [counter, ...otherCounters];
  const left = status !== null && counter !== null ? `; ${count(status.limitRemaining)} left` : '';
  return (
    <Card title={`Descriptor ${number}`} columns={12} note={<Text text={textOf(descriptor)} />}>
      <ol class="steps pad">
        <li>
          Domain <Text text={query.domain} />:{' '}
          {outcome === 'unknown domain' ? 'the rules do not have it' : 'the rules have it'}
        </li>
        {steps.map((step, index) => (
          <Step key={index} step={step} />
        ))}
        <li>
          {rule === null ? (
            outcome === 'override' ? (
              'Limit of the request'
            ) : (
              'No rule'
            )
          ) : (
            <>
              Rule <Reference rule={rule} />
            </>
          )}
          {replacedBy !== null && [', replaced by ', <Reference rule={replacedBy} />]}
          {nearest !== null && [
            '. The nearest is ',
            nearest.rule !== null && <Reference rule={nearest.rule} />,
            ': ',
            <Text text={nearest.difference} />,
          ]}
        </li>
        {counters.map((each) => (
          <li key={each.cacheKey}>
            <Text text={counterText(each)} />
            <div class="quiet">
              Key <Code text={each.cacheKey} />
            </div>
          </li>
        ))}
        <li class={`state ${status === null ? 'none' : status.code === 'OK' ? 'well' : 'over'}`}>
          <Text text={`${status?.code ?? 'No verdict'}: ${reason}${left}`} />
        </li>
      </ol>
      {counters.length > 0 && (
        <p class="actions foot">
          <a class="button" href={addressOf('callers', query)}>
            Counter
          </a>
          {mayChange && (
            <a class="button" href={addressOf('callers', { ...query, clear: 'ask' })}>
              Clear…
            </a>
          )}
        </p>
      )}
      {rule !== null && counters.length > 0 && <RuleChart statisticsKey={rule.statisticsKey} limits={counters} />}
    </Card>
  );
}

/** What is counted before the call and after it; of a bucket, its tokens. */
function counterText(counter: ExplainedCounter): string {
  const { count: before, countAfter: after, overdrawn, leased, algorithm, burst, openReservations: open } = counter;
  const isBucket = algorithm === 'token_bucket' && burst !== null && before !== null;
  function shown(value: number): string {
    return count(isBucket ? Math.max(0, burst - value) : value);
  }
  const counts = [
    `${isBucket ? 'Tokens left' : 'Count'} ${before === null ? 'not read' : shown(before)}`,
    overdrawn !== null && overdrawn > 0 && `overdrawn by ${count(overdrawn)}`,
    leased !== null && leased > 0 && `of which ${count(leased)} are leased here`,
    after !== null && `then ${shown(after)}`,
    `of ${limitText(counter)}`,
  ];
  const notes = [
    open !== null && open > 0 && counted(open, 'open reservation'),
    `${algorithm === null ? 'the window ends' : 'until'} ${clock(secondsOf(counter.resetAt))}`,
    counter.block !== null && `blocked until ${clock(secondsOf(counter.block.until))}`,
    counter.isInLocalCache && 'the local cache has it as over its limit',
    counter.answeredByPolicy !== null && `the policy ${counter.answeredByPolicy} answers`,
  ];
  const said = [counts.filter(Boolean).join(', '), ...notes.filter(Boolean)];
  return said.join('; ');
}

function Step({ step: { key, value, candidates, omitted, otherValues, keys } }: { readonly step: ExplainedStep }) {
  const others = keys.length > 0 ? `; the keys here are ${keys.join(', ')}` : '';
  return (
    <li>
      Entry <Text text={`${key}=${value}${candidates.length === 0 ? `: no rule${others}` : ''}`} />
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
      <Link href={addressOf('rules', { rule: statisticsKey })} text={statisticsKey} />
      {place !== null && <Text text={` (${placeText(place)})`} />}
    </>
  );
}
