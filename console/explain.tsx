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
import { useFleet } from './fleet-answer';
import { live, refusal } from './live-events';
import { PageBar } from './page-bar';
import { Card, CopyButton, Field, Notice, answered } from './parts';
import { type Written, bodyOf, commandOf, readPasted } from './request';
import { RuleChart } from './rule-chart';
import { addressOf, route } from './route';
import { useStore } from './store';
import { Link, capital, clock, count, counted, limitText, listed, placeText, secondsOf, shown } from './text';

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
  const body = isSent ? bodyOf(written) : '';
  const answer = useAnswer<Explanation>(isSent ? 'explanations' : undefined, { body });
  const command = answer.value && commandOf(written);
  return (
    <>
      <PageBar title="Explain" text="What would be answered to a call, and why. Nothing is counted" />
      <div class="grid">
        {problem !== undefined && <Notice tone="red" title={`${problem}.`} />}
        {isSent && answered(answer, (explanation) => <Verdict explanation={explanation} limit={written.limit} />)}
        {/* Filled in again when another request is in the address. */}
        <RequestForm key={String(parameters)} written={written} />
        <div class="c8 grid top-aligned">
          {answer.value?.descriptors.map((descriptor, index) => (
            <Descriptor key={index} descriptor={descriptor} written={written} index={index} />
          ))}
          {command !== undefined && (
            <Card title="As a command" columns={12} end={<CopyButton text={command} label="Copy the command" />}>
              <pre class="foot">{command}</pre>
            </Card>
          )}
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
  const { event } = useStore(live);
  const offenders = useFleet()?.offenders ?? event?.offenders ?? [];
  return (
    <>
      <h3 class="head line">Callers limited lately</h3>
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

/** What would be answered, and which limits are the reason. */
function Verdict({ explanation, limit }: { readonly explanation: Explanation; readonly limit: string }) {
  const { answer, error, at, descriptors } = explanation;
  const over = descriptors.filter(({ status }) => status?.code === 'OVER_LIMIT');
  const tone = answer === null ? 'red' : answer.overallCode === 'OK' ? 'well' : 'over';
  const reason = answer === null ? `The call would fail: ${error?.message}` : answer.reason;
  return (
    <Notice tone={tone} title={answer?.overallCode ?? 'No answer'}>
      <p>{`${capital(reason)}. ${clock(secondsOf(at))}`}</p>
      {over.map(({ reason: why, counter, ...each }) => {
        const limitOf = counter === null ? [] : [` (${limitText(counter)})`, endText(counter)];
        return <p key={textOf(each)}>{shown(`${textOf(each)}: ${why}${listed(limitOf)}`)}</p>;
      })}
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
  readonly written: Written;
  readonly index: number;
}

function Descriptor({ descriptor, written: { domain, descriptors }, index }: DescriptorProps) {
  const { steps, outcome, rule, replacedBy, nearest, counter, otherCounters, status, reason } = descriptor;
  const mayChange = useStore(refusal) === '';
  const query = { domain, descriptor: descriptors[index] ?? '' };
  const counters = counter === null ? [] : [counter, ...otherCounters];
  const left = status !== null && counter !== null ? `; ${count(status.limitRemaining)} left` : '';
  const tone = status === null ? 'none' : status.code === 'OK' ? 'well' : 'over';
  return (
    <Card title={`Descriptor ${index + 1}`} columns={12} note={textOf(descriptor)}>
      <ol class="steps pad">
        <li>{shown(`Domain ${domain}: the rules ${outcome === 'unknown domain' ? 'do not have' : 'have'} it`)}</li>
        {steps.map(stepOf)}
        <li>
          {rule !== null ? ['Rule ', referenceTo(rule)] : outcome === 'override' ? 'Limit of the request' : 'No rule'}
          {replacedBy !== null && [', replaced by ', referenceTo(replacedBy)]}
          {nearest !== null && ['. The nearest is ', referenceTo(nearest.rule), ': ', shown(nearest.difference)]}
        </li>
        {counters.map((each) => (
          <li key={each.cacheKey}>
            {shown(counterText(each))}
            <div class="quiet">
              Key <code>{shown(each.cacheKey)}</code>
            </div>
          </li>
        ))}
        <li class={`state ${tone}`}>{shown(`${status?.code ?? 'No verdict'}: ${reason}${left}`)}</li>
      </ol>
      {counters.length > 0 && (
        <p class="actions foot">
          <Link kind="button" href={addressOf('callers', query)} text="Counter" />
          {mayChange && <Link kind="button" href={addressOf('callers', { ...query, clear: 'ask' })} text="Clear…" />}
        </p>
      )}
      {rule !== null && counters.length > 0 && <RuleChart statisticsKey={rule.statisticsKey} limits={counters} />}
    </Card>
  );
}

/** A block says its end. */
function endText({ algorithm, block, resetAt }: ExplainedCounter, verb = 'until'): string | false {
  return algorithm !== 'max_concurrent' && block === null && `${verb} ${clock(secondsOf(resetAt))}`;
}

/** What is counted before the call and after it; of a bucket, its tokens. */
function counterText(counter: ExplainedCounter): string {
  const { count: before, countAfter: after, overdrawn, leased, algorithm, burst, openReservations: open } = counter;
  const isBucket = algorithm === 'token_bucket' && burst !== null && before !== null;
  function amount(value: number): string {
    return count(isBucket ? Math.max(0, burst - value) : value);
  }
  const counts = [
    `${isBucket ? 'Tokens left' : 'Count'} ${before === null ? 'not read' : amount(before)}`,
    overdrawn !== null && overdrawn > 0 && `overdrawn by ${count(overdrawn)}`,
    leased !== null && leased > 0 && `of which ${count(leased)} are leased here`,
    after !== null && `then ${amount(after)}`,
    `of ${limitText(counter)}`,
  ];
  const notes = [
    open !== null && open > 0 && counted(open, 'open reservation'),
    endText(counter, algorithm === null ? 'the window ends' : 'until'),
    counter.block !== null && `blocked until ${clock(secondsOf(counter.block.until))}`,
    counter.isInLocalCache && 'the local cache has it as over its limit',
    counter.answeredByPolicy !== null && `the policy ${counter.answeredByPolicy} answers`,
  ];
  return listed([listed(counts), ...notes], '; ');
}

function stepOf({ key, value, candidates, omitted, otherValues, keys }: ExplainedStep, index: number) {
  const others = keys.length > 0 ? `; the keys here are ${keys.join(', ')}` : '';
  return (
    <li key={index}>
      Entry {shown(`${key}=${value}${candidates.length === 0 ? `: no rule${others}` : ''}`)}
      <ul>
        {candidates.map(({ rule, outcome }, place) => (
          <li key={place}>
            {referenceTo(rule)}: {outcome}
          </li>
        ))}
        {omitted > 0 && <li>and {count(omitted)} more</li>}
        {otherValues > 0 && <li>another value: {counted(otherValues, 'rule')} of the key</li>}
      </ul>
    </li>
  );
}

function referenceTo(rule: RuleReference | null) {
  if (rule === null) return undefined;
  const { statisticsKey, place } = rule;
  const at = place === null ? '' : ` (${placeText(place)})`;
  return [<Link key="rule" href={addressOf('rules', { rule: statisticsKey })} text={statisticsKey} />, shown(at)];
}
