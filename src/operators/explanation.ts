import { setImmediate } from 'node:timers/promises';
import { DecisionError } from '../counting/decision-error';
import { isQuota } from '../limiter/decision';
import type { Leases } from '../counting/leases';
import type { Limit } from '../counting/limit';
import type { Result } from '../counting/operation';
import type { ExplainedDescriptor as Explained, ExplainedRequest } from '../limiter/explained-request';
import type { LimitState } from '../counting/algorithms/algorithm';
import type { LimitedDescriptor, ResolutionKind } from '../limiter/resolution';
import { Code, type DescriptorStatus, OverallCode, type Verdict } from '../limiter/verdict';
import type { AnsweringPolicy } from '../rules/rule-config';
import type { ExplainedCounter, ExplainedDescriptor, ExplainedStatus, Explanation, LimitOfCounter } from './answers';
import { counted } from '../text/counted';
import { type LookUp, type LookUps, referenceTo, shortened } from './look-ups';

/** The present counts, by cache key, or why they cannot be read. */
export type StoredCounts = ReadonlyMap<string, Result> | DecisionError;

/** How many open reservations counters have, by cache key. */
type OpenReservationCounts = ReadonlyMap<string, number>;

/** Milliseconds of a turn of the event loop that an explanation takes at most, so that decisions go on meanwhile. */
const SLICE = 5;

/** The explanation of a request as plain data. Of many descriptors, each turn of the event loop explains some. */
export async function explanationOf(
  explained: ExplainedRequest,
  lookUps: LookUps,
  { stored, open = new Map(), leases }: CountsOfExplanation,
): Promise<Explanation> {
  const { request, nowSeconds } = explained;
  const counts = stored instanceof DecisionError ? undefined : stored;
  const leased = new Map(explained.operations.map(({ key }) => [key, leases?.heldOf(key) ?? 0]));
  const verdict = counts && explained.verdict(leases === undefined ? counts : withoutLeased(explained, counts, leases));
  const descriptors: ExplainedDescriptor[] = [];
  let sliceStart = performance.now();
  for (const [index, descriptor] of explained.descriptors.entries()) {
    if (performance.now() - sliceStart >= SLICE) {
      await setImmediate();
      sliceStart = performance.now();
    }
    const asked = request.descriptors[index]!;
    const status = verdict?.statuses[index];
    descriptors.push({
      entries: asked.entries.map(({ key, value }) => ({ key: shortened(key), value: shortened(value) })),
      ...describe(descriptor, lookUps.of(asked), { explained, counts, status, open, leased }),
    });
  }
  return {
    domain: shortened(request.domain),
    at: isoTime(nowSeconds),
    descriptors,
    answer: verdict === undefined ? null : answerOf(explained, verdict),
    error: stored instanceof DecisionError ? { code: stored.code, message: stored.message } : null,
  };
}

/** What was read for an explanation. */
interface CountsOfExplanation {
  readonly stored: StoredCounts;
  readonly open?: OpenReservationCounts;
  /** Those of this process; undefined: there are none. */
  readonly leases?: Leases | undefined;
}

/** What a decision of this process goes by: hits that it holds are not used. */
function withoutLeased(
  { operations }: ExplainedRequest,
  counts: ReadonlyMap<string, Result>,
  leases: Leases,
): ReadonlyMap<string, Result> {
  const left = new Map(counts);
  for (const operation of operations) {
    const stored = counts.get(operation.key);
    if (stored !== undefined && !(stored instanceof DecisionError))
      left.set(operation.key, leases.without(stored, operation));
  }
  return left;
}

interface DescriptorState {
  readonly explained: ExplainedRequest;
  readonly counts: ReadonlyMap<string, Result> | undefined;
  readonly status: DescriptorStatus | undefined;
  readonly open: OpenReservationCounts;
  /** Hits that this process holds, by cache key. */
  readonly leased: ReadonlyMap<string, number>;
}

function describe(
  { resolution, replacedBy }: Explained,
  { outcome, steps, nearest }: LookUp,
  state: DescriptorState,
): Omit<ExplainedDescriptor, 'entries'> {
  const { status } = state;
  const { kind, limited, limits = [], rule } = resolution;
  const explained = {
    steps,
    outcome: lookUpOutcome(kind, outcome),
    rule: referenceTo(rule),
    replacedBy: referenceTo(replacedBy),
    nearest,
    counter: limited === undefined ? null : counterOf(limited, state),
    otherCounters: limits
      .filter((other) => other !== limited)
      .map((other) => counterOf(other, { ...state, status: undefined })),
    status: status === undefined ? null : statusOf(status),
  };
  return { ...explained, reason: reasonOf(explained, limited) };
}

/** How the look-up ended, or what became of the rule that it found. */
function lookUpOutcome(kind: ResolutionKind, found: LookUp['outcome']): ExplainedDescriptor['outcome'] {
  if (kind === 'replaced' || kind === 'unlimited' || kind === 'denied') return kind;
  return kind === 'limited' && found !== 'limit' && found !== 'override' ? 'default' : found;
}

function counterOf(limited: LimitedDescriptor, state: DescriptorState): ExplainedCounter {
  const { limit, key, callHits, isNegative, isKnownOver, after, outcome, failure } = limited;
  const { nowSeconds } = state.explained;
  const { quotaMode, enforcePercent = 100 } = limit.options;
  const hasWindow = limit.isFixedWindow;
  const untilReset = outcome?.secondsUntilReset ?? state.status?.secondsUntilReset ?? 0;
  const start = hasWindow ? limit.startOfWindow(nowSeconds) : nowSeconds;
  const reset = hasWindow ? limit.endOfWindow(nowSeconds) : start + untilReset;
  const count = countOf(limited, state) ?? null;
  return {
    cacheKey: shortened(key),
    ...counterLimitOf(limit),
    shadowMode: limit.shadowMode,
    enforcePercent: limit.options.shadowMode || enforcePercent === 100 ? null : enforcePercent,
    quotaMode,
    onStoreFailure: limit.onStoreFailure,
    hits: callHits,
    isNegativeHits: isNegative,
    isInLocalCache: isKnownOver,
    answeredByPolicy: failure === undefined ? null : (limit.onStoreFailure as AnsweringPolicy),
    count,
    leased: limit.lease ? (state.leased.get(key) ?? 0) : null,
    countAfter: count === null ? null : after,
    openReservations: state.open.get(key) ?? null,
    windowStart: isoTime(start),
    resetAt: isoTime(reset),
  };
}

/** What answers about a counter say of its limit. */
export function counterLimitOf(limit: Limit): LimitOfCounter {
  const { requestsPerUnit, unit, unitMultiplier, calendar = null, name, algorithmName: algorithm = null } = limit;
  const burst = algorithm === 'token_bucket' ? limit.capacity : null;
  return { requestsPerUnit, unit: unit.name, unitMultiplier, calendar, algorithm, burst, name };
}

/** As {@link ExplainedCounter.count}; undefined: it was not read. */
function countOf(
  { limit, key, isKnownOver, failure }: LimitedDescriptor,
  { explained, counts }: DescriptorState,
): number | undefined {
  if (isKnownOver) return undefined;
  if (failure !== undefined) return limit.onStoreFailure === 'local' ? explained.localCountOf(key) : undefined;
  const stored = counts && ((counts.get(key) ?? 0) as number | LimitState);
  return typeof stored === 'object' ? limit.algorithm?.decide(stored, 0).used : stored;
}

function statusOf({ code, limitRemaining, secondsUntilReset }: DescriptorStatus): ExplainedStatus {
  return { code: nameOf(code), limitRemaining, secondsUntilReset: secondsUntilReset ?? null };
}

function answerOf(explained: ExplainedRequest, verdict: Verdict): Explanation['answer'] {
  return {
    overallCode: nameOf(verdict.overallCode),
    reason: reasonOfAnswer(explained, verdict),
    responseHeaders: verdict.responseHeaders,
  };
}

function nameOf(code: Code): 'OK' | 'OVER_LIMIT' {
  return code === Code.OVER_LIMIT ? 'OVER_LIMIT' : 'OK';
}

/** A time in Unix seconds, in the format of ISO 8601. */
export function isoTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

const REASONS: Readonly<Partial<Record<ExplainedDescriptor['outcome'], string>>> = {
  'unknown domain': 'no limit applies, because the rules do not have the domain',
  'no entries': 'no limit applies, because the descriptor has no entries',
  'no match': 'no limit applies, because no rule matches',
  'too deep': 'no limit applies, because the descriptor has more entries than rules are nested',
  'no limit': 'no limit applies, because the rule has no rate_limit',
  unlimited: 'the rule is unlimited',
  denied: 'no rule matches, and on_unmatched denies that',
};

/** Why a descriptor has its status, in one sentence without a full stop. */
function reasonOf(
  { outcome, replacedBy, counter, status }: Pick<ExplainedDescriptor, 'outcome' | 'replacedBy' | 'counter' | 'status'>,
  limited: LimitedDescriptor | undefined,
): string {
  if (outcome === 'replaced') return `the rule is not applied, because ${replacedBy?.statisticsKey} replaces it`;
  const reason = REASONS[outcome];
  if (reason !== undefined) return reason;
  if (limited === undefined || counter === null || status === null) return 'the count cannot be read';
  const isDenied = limited.outcome?.isAllowed === false;
  const isCounted = limited.hits !== 0 || limited.callHits === 0 || isDenied;
  const counts = isCounted ? reasonOfCount(counter, status.code, isDenied) : reasonOfRead(counter, limited);
  const { failure } = limited;
  const ofLimit = failure === undefined ? counts : reasonOfPolicy(counter, failure, counts);
  return outcome === 'default' ? `no rule matches, so default_rate_limit applies: ${ofLimit}` : ofLimit;
}

/** Why the hits of a limit would not be counted, although it would not deny them. */
function reasonOfRead({ count }: ExplainedCounter, { group }: LimitedDescriptor): string {
  const cause = group?.isOver === true ? 'another descriptor is denied' : 'another limit is over';
  return `the count would stay ${count}, because ${cause} and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is set`;
}

/** @param counts why it has its status where a count of this instance answers */
function reasonOfPolicy(
  { answeredByPolicy: policy }: ExplainedCounter,
  { message }: DecisionError,
  counts: string,
): string {
  const answer = policy === 'local' ? `this instance counts: ${counts}` : `the policy ${policy} answers`;
  return `${message}, so that ${answer}`;
}

function reasonOfCount(counter: ExplainedCounter, code: 'OK' | 'OVER_LIMIT', isDenied: boolean): string {
  const { hits, isNegativeHits, isInLocalCache, count, leased, countAfter, shadowMode, enforcePercent } = counter;
  const open = counter.openReservations ?? 0;
  const most = counter.burst ?? counter.requestsPerUnit;
  if (isNegativeHits) return `${hits} would be subtracted from the count of ${count}, which never is over the limit`;
  const isOver = isInLocalCache || isDenied || (countAfter ?? 0) > most;
  const allows = enforcePercent === null ? 'shadow mode' : 'enforce_percent';
  const shadow = isOver && shadowMode && code === 'OK' ? `, which ${allows} allows` : '';
  const held = leased === null || leased === 0 ? '' : `${leased} of ${counted(count ?? 0, 'hit')} are leased here; `;
  if (isInLocalCache) {
    return `the local cache has the counter as over the limit until LOCAL_CACHE_MAX_AGE has passed or its window ends${shadow}`;
  }
  if (isDenied)
    return `${held}${count} of at most ${most} hits count, so that ${counted(hits, 'hit')} would be too many${shadow}`;
  const reserved = open > 0 ? `, with ${counted(open, 'open reservation')}` : '';
  const change = `the count would be ${countAfter} after ${counted(hits, 'hit')}${reserved}`;
  return `${held}${change}, ${isOver ? 'over' : 'within'} the limit of ${most}${shadow}`;
}

/** Why a request has its overall code. */
function reasonOfAnswer({ options, descriptors }: ExplainedRequest, { overallCode, statuses }: Verdict): string {
  const over = statuses.flatMap(({ code }, index) => (code === Code.OVER_LIMIT ? [index] : []));
  const byPolicy = descriptors.map(({ resolution: { limited } }) => limited?.failure && limited.limit.onStoreFailure);
  if (over.length === 0) {
    return `no descriptor is over its limit${byPolicy.includes('allow') ? ', as far as they could be counted' : ''}`;
  }
  const [first] = over;
  const isQuotaAt = descriptors.map(({ resolution }) => isQuota(resolution, options));
  function isDenied(index: number): boolean {
    return byPolicy[index] === 'deny' || descriptors[index]?.resolution.kind === 'denied';
  }
  const hard = over.find((index) => !isQuotaAt[index]);
  const reason =
    hard === undefined
      ? `descriptor ${(first ?? 0) + 1} is over its quota`
      : `descriptor ${hard + 1} is ${isDenied(hard) ? 'denied' : 'over its limit'}`;
  if (overallCode === Code.OVER_LIMIT) return hard === undefined ? 'every quota is used up' : reason;
  const withoutShadow = new OverallCode();
  statuses.forEach(({ code }, index) => withoutShadow.add(code, isQuotaAt[index] === true));
  const isAllowed = withoutShadow.code === Code.OK;
  return isAllowed ? `${reason}, but not every quota is used up` : `${reason}, which SHADOW_MODE allows`;
}
