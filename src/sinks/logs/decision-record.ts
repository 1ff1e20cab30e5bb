import type { Purpose } from '../../counting/algorithms/algorithm';
import type { Decision } from '../../limiter/decision';
import { DecisionError } from '../../counting/decision-error';
import { entriesCountedAs } from '../../limiter/cache-key';
import { type Resolution, outcomeOf } from '../../limiter/resolution';
import { type Descriptor, type Entry, type RateLimitRequest, hitsOf } from '../../limiter/request';
import type { Limit } from '../../counting/limit';
import { describeLimit } from '../../limiter/metadata';
import { CODE_NAMES, Code, type DescriptorStatus, type Verdict } from '../../limiter/verdict';
import type { LoggedReservation } from '../../streams/in-flight-decision';
import type { EndedDescriptor, EndedReservation } from '../../streams/ports/reservations';
import { excerpt } from '../../text/excerpt';

/** How many descriptors of a request, and entries of a descriptor, a record has. */
const MOST_LISTED = 20;
/** How many characters of one text a record has, and of all of them together. */
const LONGEST_TEXT = 256;
const MOST_TEXT = 8192;

/** The limit of a rule is described once. */
const textsOfLimits = new WeakMap<Limit, string>();

/** What a record has besides the decision. */
export interface RecordContext {
  /** Unix time in milliseconds. */
  readonly now: number;
  /** `host:port`; undefined if it is not known. */
  readonly caller: string | undefined;
  readonly traceId: string | undefined;
  /** The share of the decisions that are written: DECISION_LOG_SAMPLE. */
  readonly sample: number;
  readonly reservation?: LoggedReservation | undefined;
}

/**
 * The record of a decision in JSON, as schema/decision-log.schema.json describes it. Texts and lists of callers are
 * shortened. It is concatenated, because objects with optional members would take ten times as long.
 */
export function decisionRecord(decision: Decision, outcome: Verdict | DecisionError, context: RecordContext): string {
  const { request, resolutions, isOver } = decision;
  const texts = new Excerpts();
  const head = `{"type":"decision",${headOf(request, context, texts)}`;
  if (outcome instanceof DecisionError) {
    const failed = listOf(request, texts, (index) => ruleOf(resolutions[index] as Resolution));
    return `${head}${errorOf(outcome)}${failed}${sourceOf(context)}}`;
  }
  const { overallCode, statuses } = outcome;
  const shadow = isOver && overallCode === Code.OK ? ',"shadowMode":true' : '';
  const list = listOf(request, texts, (index) =>
    describe(decision, index, { status: statuses[index]!, texts, isReserved: context.reservation !== undefined }),
  );
  return `${head},"code":"${CODE_NAMES[overallCode]}"${shadow}${list}${sourceOf(context)}}`;
}

/** The record of a request that was rejected before it was decided. */
export function rejectionRecord(request: RateLimitRequest, error: DecisionError, context: RecordContext): string {
  const texts = new Excerpts();
  const [head, list] = [headOf(request, context, texts), listOf(request, texts, () => '')];
  return `{"type":"decision",${head}${errorOf(error)}${list}${sourceOf(context)}}`;
}

/** The record of a reservation that was settled or cancelled. */
export function endRecord(
  request: RateLimitRequest,
  { state, descriptors }: EndedReservation,
  context: RecordContext,
): string {
  const texts = new Excerpts();
  const list = listOf(request, texts, (index) => {
    const { reserved, hits, added } = descriptors[index] as EndedDescriptor;
    return `,"hits":${hits},"reserved":${reserved},"added":${added}`;
  });
  return `{"type":"reservation",${headOf(request, context, texts)},"state":"${state}"${list}${sourceOf(context)}}`;
}

function headOf({ domain, purpose }: RateLimitRequest, { now }: RecordContext, texts: Excerpts): string {
  return `"time":"${new Date(now).toISOString()}","domain":${JSON.stringify(texts.of(domain))}${purposeIn(purpose)}`;
}

function purposeIn(purpose: Purpose | undefined): string {
  return purpose === undefined ? '' : `,"purpose":"${purpose}"`;
}

function errorOf({ code, message }: DecisionError): string {
  return `,"error":{"code":"${code}","message":${JSON.stringify(message)}}`;
}

function sourceOf({ caller, traceId, sample, reservation }: RecordContext): string {
  return (
    (reservation === undefined ? '' : describeReservation(reservation)) +
    (caller === undefined ? '' : `,"caller":"${caller}"`) +
    (traceId === undefined ? '' : `,"traceId":"${traceId}"`) +
    (sample === 1 ? '' : `,"sample":${sample}`)
  );
}

function describeReservation({ id, ttl, onExpiry }: LoggedReservation): string {
  const terms = ttl === undefined ? '' : `,"ttl":"${ttl / 1000}s","onExpiry":"${onExpiry}"`;
  return `,"reservation":"${id}"${terms}`;
}

function describe(
  { request, resolutions }: Decision,
  index: number,
  {
    status,
    texts,
    isReserved,
  }: { readonly status: DescriptorStatus; readonly texts: Excerpts; readonly isReserved: boolean },
): string {
  const resolution = resolutions[index] as Resolution;
  const { code, currentLimit, secondsUntilReset } = status;
  const { reason, count, policy, isShadow } = outcomeOf(resolution);
  const descriptor = request.descriptors[index] as Descriptor;
  const { limited } = resolution;
  // An ask counts none, whatever hits its request has, and a reservation none of a postpaid limit if it names none;
  // limits beside one of open reservations count nevertheless.
  const counting = resolution.limits?.find(({ limit }) => limit.algorithmName !== 'max_concurrent') ?? limited;
  const isOwn = counting?.purpose !== undefined || (isReserved && counting?.limit.algorithmName !== 'max_concurrent');
  const hits = (isOwn ? counting?.callHits : undefined) ?? hitsOf(descriptor, request);
  const counted = entriesCountedAs(limited && resolution.rule, descriptor.entries);
  let json = counted.length === 0 ? '' : `,"countedAs":[${textsOf(counted.slice(0, MOST_LISTED), texts)}]`;
  json += (limited === undefined && hits === 1 ? '' : `,"hits":${hits}`) + purposeIn(counting?.purpose);
  if (descriptor.isNegativeHits) json += ',"isNegativeHits":true';
  json += `,"code":"${CODE_NAMES[code]}","reason":"${reason}"${ruleOf(resolution)}`;
  if (policy !== undefined) json += `,"policy":"${policy}"`;
  if (currentLimit !== undefined) json += `,"currentLimit":${textOfLimit(currentLimit)}`;
  if (count !== undefined) json += `,"count":${count}${overdrawnOf(resolution, count)}`;
  if (limited?.isLeased === true) json += ',"leased":true';
  if (secondsUntilReset !== undefined) json += `,"durationUntilReset":"${secondsUntilReset}s"`;
  return isShadow ? `${json},"shadowMode":true` : json;
}

/** What a postpaid limit is overdrawn by. */
function overdrawnOf({ limited }: Resolution, count: number): string {
  const overdrawn = limited?.limit.overdrawnBy(count) ?? 0;
  return overdrawn > 0 ? `,"overdrawn":${overdrawn}` : '';
}

function textOfLimit(limit: Limit): string {
  let text = textsOfLimits.get(limit);
  if (text === undefined) textsOfLimits.set(limit, (text = JSON.stringify(describeLimit(limit))));
  return text;
}

/** The only part of a decision without a verdict that is known. */
function ruleOf(resolution: Resolution): string {
  const { rule } = outcomeOf(resolution);
  return rule === undefined ? '' : `,"rule":${JSON.stringify(rule)}`;
}

function listOf({ descriptors }: RateLimitRequest, texts: Excerpts, describeAt: (index: number) => string): string {
  const count = Math.min(descriptors.length, MOST_LISTED);
  let list = '';
  for (let index = 0; index < count; index += 1) {
    const { entries } = descriptors[index] as Descriptor;
    list += `${index === 0 ? '' : ','}{"entries":${entriesOf(entries, texts)}${describeAt(index)}}`;
  }
  const leftOut = descriptors.length - count;
  return `,"descriptors":[${list}]${leftOut > 0 ? `,"moreDescriptors":${leftOut}` : ''}`;
}

/** The list of entries, and if some are left out their number as a further member. */
function entriesOf(entries: readonly Entry[], texts: Excerpts): string {
  const listed = entries.slice(0, MOST_LISTED);
  const leftOut = entries.length - listed.length;
  return `[${textsOf(listed, texts)}]${leftOut > 0 ? `,"moreEntries":${leftOut}` : ''}`;
}

function textsOf(entries: readonly Entry[], texts: Excerpts): string {
  return entries.map(({ key, value }) => JSON.stringify(`${texts.of(key)}=${texts.of(value)}`)).join();
}

/** The beginnings of the texts of one record. */
class Excerpts {
  #left = MOST_TEXT;

  of(text: string): string {
    const most = Math.min(LONGEST_TEXT, this.#left);
    this.#left -= Math.min(text.length, most);
    return excerpt(text, most);
  }
}
