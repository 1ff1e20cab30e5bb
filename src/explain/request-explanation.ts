import type { BlockableState, LimitState, Outcome } from '../counting/algorithms/algorithm';
import { DecisionError } from '../counting/decision-error';
import type { Leases } from '../counting/leases';
import type { Limit } from '../counting/limit';
import type { Result } from '../counting/operation';
import { entriesCountedAs } from '../limiter/cache-key';
import type { LimitedDescriptor, Resolution, ResolutionKind } from '../limiter/resolution';
import type { Trial } from '../limiter/trial';
import { CODE_NAMES, type DescriptorStatus, type Verdict } from '../limiter/verdict';
import type { AnsweringPolicy } from '../rules/rule-config';
import type { Entry, Rule } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import { scheduleOf } from '../rules/schedule';
import type { ActiveConfig, LimitActivity } from '../rules/unit';
import { shortened } from '../text/excerpt';
import { isoTime } from '../text/iso-time';
import type {
  ExplainedCounter,
  ExplainedDescriptor,
  ExplainedOutcome,
  Explanation,
  LimitOfCounter,
  PresentBlock,
} from './explanation';
import { type TracedDescriptor, matchTrace, referenceTo } from './match-trace';
import { reasonOf, reasonOfAnswer } from './text';

/** What is known of the counters of a request. */
export interface KnownCounts {
  /** The present counts and states, by cache key, or why they cannot be read. */
  readonly stored: ReadonlyMap<string, Result> | DecisionError;
  /** How many open reservations counters have, by cache key. */
  readonly open?: ReadonlyMap<string, number>;
  /** The hits that this process holds for later calls; undefined: none. */
  readonly leases?: Leases | undefined;
}

/** Explains a request: what the rules have for each descriptor, and what a decision would answer with these counts. */
export class RequestExplanation {
  readonly #trial: Trial;
  readonly #trace: ReturnType<typeof matchTrace>;
  readonly #stored: KnownCounts['stored'];
  readonly #open: ReadonlyMap<string, number>;
  /** Hits that this process holds, by cache key. */
  readonly #leased: ReadonlyMap<string, number>;
  /** Undefined when the counts cannot be read. */
  readonly #verdict: Verdict | undefined;
  readonly #replacers: ReadonlyMap<string, Rule>;

  /** @param ruleset by which the trial has begun */
  constructor(trial: Trial, ruleset: Ruleset, { stored, open = new Map(), leases }: KnownCounts) {
    const { request, operations, resolutions } = trial.decision;
    this.#trial = trial;
    this.#trace = matchTrace(ruleset, request);
    this.#stored = stored;
    this.#open = open;
    this.#leased = new Map(operations.map(({ key }) => [key, leases?.heldOf(key) ?? 0]));
    this.#replacers = replacersIn(resolutions);
    if (stored instanceof DecisionError) return;
    this.#verdict = trial.verdict(leases === undefined ? stored : withoutLeased(operations, stored, leases));
  }

  /** Explains a descriptor. To be called for one after the other, as what is listed of all of them is limited. */
  descriptor(index: number): ExplainedDescriptor {
    const { request, resolutions } = this.#trial.decision;
    const asked = request.descriptors[index]!;
    const { kind, limited, limits = [], rule } = resolutions[index]!;
    const status = this.#verdict?.statuses[index];
    const { outcome, steps, nearest } = this.#trace(asked);
    const replacer = kind === 'replaced' ? this.#replacers.get(rule?.limit?.name ?? '') : undefined;
    const explained = {
      entries: shownEntries(asked.entries),
      countedAs: shownEntries(entriesCountedAs(limited && rule, asked.entries)),
      steps,
      outcome: outcomeOf(kind, outcome),
      rule: referenceTo(rule),
      replacedBy: referenceTo(replacer),
      nearest,
      counter: limited === undefined ? null : this.#counter(limited, status),
      otherCounters: limits.filter((other) => other !== limited).map((other) => this.#counter(other, undefined)),
      status: status === undefined ? null : statusOf(status),
    };
    return { ...explained, reason: reasonOf(explained, limited, activeFrom(rule, this.#trial.decision.nowSeconds)) };
  }

  /** The explanation of the request. @param descriptors each {@link descriptor} */
  of(descriptors: readonly ExplainedDescriptor[]): Explanation {
    const { request, nowSeconds } = this.#trial.decision;
    const [stored, verdict] = [this.#stored, this.#verdict];
    return {
      domain: shortened(request.domain),
      at: isoTime(nowSeconds),
      descriptors,
      answer: verdict === undefined ? null : answerOf(this.#trial, verdict),
      error: stored instanceof DecisionError ? { code: stored.code, message: stored.message } : null,
    };
  }

  #counter(limited: LimitedDescriptor, status: DescriptorStatus | undefined): ExplainedCounter {
    const { nowSeconds } = this.#trial.decision;
    const { limit, key, callHits, isNegative, isKnownOver, countAfter, outcome, failure } = limited;
    const { quotaMode, enforcePercent = 100 } = limit.options;
    const hasWindow = limit.isFixedWindow && outcome?.blockedUntil === undefined;
    const untilReset = outcome?.secondsUntilReset ?? status?.secondsUntilReset ?? 0;
    const start = hasWindow ? limit.startOfWindow(nowSeconds) : nowSeconds;
    const reset = hasWindow ? limit.endOfWindow(nowSeconds) : start + untilReset;
    const count = this.#countOf(limited) ?? null;
    return {
      cacheKey: shortened(key),
      ...counterLimitOf(limit, nowSeconds),
      shadowMode: limit.shadowMode,
      enforcePercent: limit.options.shadowMode || enforcePercent === 100 ? null : enforcePercent,
      quotaMode,
      onStoreFailure: limit.onStoreFailure,
      hits: callHits,
      isNegativeHits: isNegative,
      isInLocalCache: isKnownOver,
      answeredByPolicy: failure === undefined ? null : (limit.onStoreFailure as AnsweringPolicy),
      count,
      overdrawn: count === null ? null : limit.overdrawnBy(count),
      leased: limit.lease ? (this.#leased.get(key) ?? 0) : null,
      block: isKnownOver ? null : blockIn(outcome),
      countAfter: count === null ? null : countAfter,
      openReservations: this.#open.get(key) ?? null,
      windowStart: isoTime(start),
      resetAt: isoTime(reset),
    };
  }

  /** As {@link ExplainedCounter.count}; undefined: it was not read. */
  #countOf({ limit, key, isKnownOver, failure }: LimitedDescriptor): number | undefined {
    if (isKnownOver) return undefined;
    if (failure !== undefined) return limit.onStoreFailure === 'local' ? this.#trial.localCountOf(key) : undefined;
    if (this.#stored instanceof DecisionError) return undefined;
    const stored = (this.#stored.get(key) ?? 0) as number | LimitState;
    return typeof stored === 'object' ? limit.algorithm?.decide(stored, 0).used : stored;
  }
}

function shownEntries(entries: readonly Entry[]): ExplainedDescriptor['entries'] {
  return entries.map(({ key, value }) => ({ key: shortened(key), value: shortened(value) }));
}

/** What a decision of this process goes by: hits that it holds are not used. */
function withoutLeased(
  operations: readonly LimitedDescriptor[],
  stored: ReadonlyMap<string, Result>,
  leases: Leases,
): ReadonlyMap<string, Result> {
  const left = new Map(stored);
  for (const operation of operations) {
    const count = stored.get(operation.key);
    if (count !== undefined && !(count instanceof DecisionError))
      left.set(operation.key, leases.without(count, operation));
  }
  return left;
}

/** By the names that they replace, the first of the matched rules. As in a decision, the number of names is limited. */
function replacersIn(resolutions: readonly Resolution[]): ReadonlyMap<string, Rule> {
  const replacers = new Map<string, Rule>();
  if (!resolutions.some(({ kind }) => kind === 'replaced')) return replacers;
  for (const rule of new Set(resolutions.map(({ rule: matched }) => matched))) {
    if (rule === undefined) continue;
    for (const name of rule.replaces) if (!replacers.has(name)) replacers.set(name, rule);
  }
  return replacers;
}

/** How the search ended, or what became of the rule that it found. */
function outcomeOf(kind: ResolutionKind, found: TracedDescriptor['outcome']): ExplainedOutcome {
  if (kind === 'replaced' || kind === 'inactive' || kind === 'unlimited' || kind === 'denied') return kind;
  return kind === 'limited' && found !== 'limit' && found !== 'override' ? 'default' : found;
}

/** What answers about a counter say of its limit. */
export function counterLimitOf(limit: Limit, nowSeconds: number): LimitOfCounter {
  const { requestsPerUnit, unit, unitMultiplier, calendar = null, name, algorithmName: algorithm = null } = limit;
  const { active = null, blockFor = null, postpaid } = limit;
  const burst = algorithm === 'token_bucket' ? limit.capacity : null;
  const activity = activityOf(active, nowSeconds);
  const counting = { requestsPerUnit, unit: unit.name, unitMultiplier, calendar, algorithm, burst, postpaid };
  return { ...counting, active, activity, blockFor, name };
}

/** The block that a call is in; null: in none, or it would start one. */
export function blockIn(outcome: Outcome | undefined): PresentBlock | null {
  if (outcome?.blockedUntil === undefined || outcome.startsBlock === true) return null;
  const { block } = outcome.state as BlockableState;
  return { until: isoTime(block.end / 1_000_000), seconds: block.length / 1_000_000 };
}

/** @param active null: the limit always applies */
export function activityOf(active: ActiveConfig | null, nowSeconds: number): LimitActivity | null {
  if (active === null) return null;
  const schedule = scheduleOf(active);
  const changesAt = schedule.changesAfter(nowSeconds);
  return {
    isActive: schedule.isActiveAt(nowSeconds),
    changesAt: changesAt === Infinity ? null : isoTime(changesAt),
  };
}

/** When the first limit of a rule applies that does not apply now; undefined: never. */
function activeFrom(rule: Rule | undefined, nowSeconds: number): string | undefined {
  const states = (rule?.limits ?? []).map(({ active = null }) => activityOf(active, nowSeconds));
  return states.flatMap((state) => (state?.isActive === false ? (state.changesAt ?? []) : [])).toSorted()[0];
}

function statusOf({ code, limitRemaining, secondsUntilReset }: DescriptorStatus): ExplainedDescriptor['status'] {
  return { code: CODE_NAMES[code], limitRemaining, secondsUntilReset: secondsUntilReset ?? null };
}

function answerOf(trial: Trial, verdict: Verdict): Explanation['answer'] {
  const { overallCode, responseHeaders } = verdict;
  return { overallCode: CODE_NAMES[overallCode], reason: reasonOfAnswer(trial, verdict), responseHeaders };
}
