import type { DecisionError } from '../../limiter/decision-error';
import type { ExplainedDescriptor as Explained, ExplainedRequest } from '../../limiter/explanations/explained-request';
import { windowStart } from '../../limiter/cache-key';
import type { LimitedDescriptor } from '../../limiter/limited-descriptor';
import { Code, type DescriptorStatus, type Verdict } from '../../limiter/verdict';
import type { ExplainedCounter, ExplainedDescriptor, ExplainedStatus, Explanation } from '../../streams/ports/operator';
import { type LookUp, type LookUps, referenceTo, shortened } from './look-ups';
import { reasonOf, reasonOfAnswer } from './reasons';

/** The present counts, by cache key, or why they cannot be read. */
export type StoredCounts = ReadonlyMap<string, number> | DecisionError;

/** The explanation of a request as plain data. */
export function explanationOf(explained: ExplainedRequest, lookUps: LookUps, stored: StoredCounts): Explanation {
  const { request, descriptors, nowSeconds } = explained;
  const counts = stored instanceof Map ? (stored as ReadonlyMap<string, number>) : undefined;
  const verdict = counts && explained.verdict(counts);
  return {
    domain: shortened(request.domain),
    at: isoTime(nowSeconds),
    descriptors: descriptors.map((descriptor, index) => {
      const { entries } = request.descriptors[index]!;
      const lookUp = lookUps.of(request.descriptors[index]!);
      const status = verdict?.statuses[index];
      return {
        entries: entries.map(({ key, value }) => ({ key: shortened(key), value: shortened(value) })),
        ...describe(descriptor, lookUp, { counts, status, nowSeconds }),
      };
    }),
    answer: verdict === undefined ? null : answerOf(explained, verdict),
    error: counts === undefined ? errorOf(stored as DecisionError) : null,
  };
}

interface DescriptorState {
  readonly counts: ReadonlyMap<string, number> | undefined;
  readonly status: DescriptorStatus | undefined;
  readonly nowSeconds: number;
}

function describe(
  descriptor: Explained,
  { outcome, steps, nearest }: LookUp,
  { counts, status, nowSeconds }: DescriptorState,
): Omit<ExplainedDescriptor, 'entries'> {
  const { resolution, replacedBy } = descriptor;
  const { kind, limited, rule } = resolution;
  const applied = kind === 'replaced' || kind === 'unlimited' ? kind : outcome;
  const counter = limited === undefined ? null : counterOf(limited, counts, nowSeconds);
  const explained = {
    steps,
    outcome: applied,
    rule: referenceTo(rule),
    replacedBy: referenceTo(replacedBy),
    nearest,
    counter,
    status: status === undefined ? null : statusOf(status),
  };
  const isCounted = limited === undefined || limited.hits !== 0 || limited.callHits === 0;
  return { ...explained, reason: reasonOf({ ...explained, isCounted }) };
}

function counterOf(
  { applied, key, callHits, isNegative, overByLocalCache, after }: LimitedDescriptor,
  counts: ReadonlyMap<string, number> | undefined,
  nowSeconds: number,
): ExplainedCounter {
  const { requestsPerUnit, unit, name } = applied.currentLimit;
  const start = windowStart(nowSeconds, applied.windowSeconds);
  const isRead = counts !== undefined && !overByLocalCache;
  return {
    cacheKey: shortened(key),
    requestsPerUnit,
    unit: unit.name,
    name,
    shadowMode: applied.shadowMode,
    quotaMode: applied.quotaMode,
    hits: callHits,
    isNegativeHits: isNegative,
    isInLocalCache: overByLocalCache,
    count: isRead ? (counts.get(key) ?? 0) : null,
    countAfter: isRead ? after : null,
    windowStart: isoTime(start),
    resetAt: isoTime(start + applied.windowSeconds),
  };
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

function errorOf({ code, message }: DecisionError): { readonly code: string; readonly message: string } {
  return { code, message };
}

function nameOf(code: Code): 'OK' | 'OVER_LIMIT' {
  return code === Code.OVER_LIMIT ? 'OVER_LIMIT' : 'OK';
}

/** A time in Unix seconds, in the format of ISO 8601. */
export function isoTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}
