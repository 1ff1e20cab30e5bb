import { type CalendarUnit, type CalendarWindows, calendarWindows } from '../rules/calendar';
import {
  type AlgorithmName,
  DEFAULT_RULE_OPTIONS,
  type FailurePolicy,
  LARGEST_LIMIT,
  NO_LIMIT,
  type RuleLimit,
  type RuleOptions,
} from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import { type Schedule, scheduleOf } from '../rules/schedule';
import { limitSuffix, plainStatisticsKey } from '../rules/statistics-key';
import { type ActiveConfig, type BlockConfig, type CalendarConfig, UNITS, type Unit } from '../rules/unit';
import { MAX_UINT32 } from '../text/plain-number';
import type { Algorithm, AlgorithmLimit } from './algorithms/algorithm';
import { Blocking } from './algorithms/blocking';
import { TokenBucket } from './algorithms/bucket';
import { Concurrent } from './algorithms/concurrent';
import { FixedWindow } from './algorithms/fixed';
import { SlidingWindow } from './algorithms/sliding';
import type { CountedLimit } from './operation';
import { windowStart } from './windows';

/** The settings of limits. */
export interface LimitOptions {
  /** NEAR_LIMIT_RATIO, from 0 to 1 */
  readonly nearLimitRatio: number;
  /** LIMIT_NAME_FROM_RULE: the path of a rule without a name is the name of its limit */
  readonly limitNameFromRule?: boolean;
  /** STORE_FAILURE_POLICY; undefined: `error` */
  readonly onStoreFailure?: FailurePolicy;
  /** What an operator tries instead of the requests per unit of every limit */
  readonly limitTried?: number | undefined;
  /** LEASES, where hits can be leased; undefined: they are not. */
  readonly leases?: 'off' | 'rules' | 'auto' | undefined;
  /** Whether the limit is that of the callers for which the rule is not enforced. */
  readonly isInShadow?: boolean;
}

/**
 * The limit of a rule, or of a request that overrides it, from the match to the answer: made at the first match of the
 * rule, or for each request with a limit override. Only a window of the calendar moves afterwards.
 */
export class Limit implements CountedLimit {
  /** The path of the rule in its file, as `/rlconfig` shows it: `domain.key_value.key2`. Empty for a limit override. */
  readonly path: string;
  /** The options of the rule; the default ones for a limit override. */
  readonly options: RuleOptions;
  readonly isOneOfSeveral: boolean;
  /** Whether the limit denies nothing; set for callers for which the rule is not enforced, too. */
  readonly shadowMode: boolean;
  readonly onStoreFailure: FailurePolicy;
  readonly lease: boolean;
  readonly postpaid: boolean;
  /** The rule's `name`; without one, its path with LIMIT_NAME_FROM_RULE. Otherwise empty, as for a limit override. */
  readonly name: string;
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** How many units the window has; 1 for a limit override. */
  readonly unitMultiplier: number;
  /** Undefined: the window has a fixed length. */
  readonly calendar: CalendarConfig | undefined;
  /** The windows of {@link calendar}, shared by all limits that have the same ones. */
  readonly #windows: CalendarWindows | undefined;
  /** Undefined: hits are counted in fixed windows; these have one only with `all_or_nothing` or `block_for`. */
  readonly algorithm: Algorithm | undefined;
  readonly blockFor: BlockConfig | undefined;
  /** The algorithm as answers name it; undefined for fixed windows, whatever decides them. */
  readonly algorithmName: AlgorithmName | undefined;
  /** The most hits that can count at once: `requestsPerUnit`, of a token bucket its burst. */
  readonly capacity: number;
  /** Counts above this value are near the limit. */
  readonly nearThreshold: number;
  /** The length of a window in seconds; of one of the calendar, about. */
  readonly lengthSeconds: number;
  /** The hours in which it applies, shared by all limits that have the same ones; undefined: always. */
  readonly schedule: Schedule | undefined;
  readonly active: ActiveConfig | undefined;

  /** @param limit with a unit: neither unlimited nor that of `on_unmatched` */
  constructor(limit: RuleLimit, options: RuleOptions, path: string, settings: LimitOptions) {
    const { unitMultiplier, calendar, algorithm, burst, postpaid, blockFor } = limit;
    const { leases = 'off' } = settings;
    const name = algorithm ?? (options.allOrNothing || blockFor !== undefined ? 'fixed_window' : undefined);
    const policy = options.onStoreFailure ?? settings.onStoreFailure ?? 'error';
    this.path = path;
    this.options = options;
    this.isOneOfSeveral = options.hasLimitList;
    this.shadowMode = options.shadowMode || settings.isInShadow === true;
    // `local` counts in fixed windows only.
    this.onStoreFailure = policy === 'local' && name !== undefined ? 'error' : policy;
    this.postpaid = postpaid;
    const mayLease = !options.allOrNothing && !postpaid && blockFor === undefined && algorithm !== 'max_concurrent';
    this.lease = leases !== 'off' && mayLease && (limit.lease ?? leases === 'auto');
    this.name = limit.name;
    const mostTried = algorithm === undefined ? LARGEST_LIMIT : MAX_UINT32;
    this.requestsPerUnit = Math.min(settings.limitTried ?? limit.requestsPerUnit, mostTried);
    this.unit = UNITS[limit.unit!];
    this.unitMultiplier = unitMultiplier;
    this.calendar = calendar;
    this.#windows = calendar && calendarWindows(this.unit.name as CalendarUnit, calendar);
    this.lengthSeconds = unitMultiplier * this.unit.seconds;
    this.active = limit.active;
    this.schedule = limit.active && scheduleOf(limit.active);
    const { requestsPerUnit, lengthSeconds } = this;
    this.algorithm = name && algorithmOf({ name, requestsPerUnit, lengthSeconds, burst, postpaid, blockFor });
    this.algorithmName = algorithm;
    this.blockFor = blockFor;
    this.capacity = this.algorithm?.capacity ?? requestsPerUnit;
    this.nearThreshold = nearThreshold(this.capacity, settings.nearLimitRatio);
  }

  /**
   * When the window of the calendar ends that was asked for last, in Unix seconds. If a call of the next window has
   * come between the binding of a call and its counting, it is the later end, and the counter is removed later.
   */
  get endsAt(): number | undefined {
    return this.#windows?.end;
  }

  /** Whether it counts in fixed windows, also where an algorithm decides them together with other limits. */
  get isFixedWindow(): boolean {
    return this.algorithmName === undefined;
  }

  /** Whether hits count for a time: not of a limit on how many run at a time. */
  get hasWindows(): boolean {
    return this.algorithmName !== 'max_concurrent';
  }

  /** The burst of a token bucket, where it is another number than `requestsPerUnit`. */
  get burst(): number | undefined {
    return this.capacity === this.requestsPerUnit ? undefined : this.capacity;
  }

  /** Higher the more it allows: what tells a limit that was raised from the one before. */
  get allowance(): number {
    return this.algorithm === undefined ? this.requestsPerUnit : this.requestsPerUnit * this.capacity;
  }

  /** How many of so many used hits are beyond a postpaid limit; null for any other one. */
  overdrawnBy(used: number): number | null {
    return this.postpaid ? Math.max(0, used - this.capacity) : null;
  }

  /** When the window that contains a time has begun, in Unix seconds. */
  startOfWindow(nowSeconds: number): number {
    return this.#windows === undefined
      ? windowStart(nowSeconds, this.lengthSeconds)
      : this.#windows.at(nowSeconds).start;
  }

  /** The first second after the window that contains a time, in Unix seconds. */
  endOfWindow(nowSeconds: number): number {
    return this.#windows === undefined
      ? windowStart(nowSeconds, this.lengthSeconds) + this.lengthSeconds
      : this.#windows.at(nowSeconds).end;
  }
}

/**
 * The count above which hits are near the limit; at most the limit. Computed in single precision, as in the Go service:
 * in double precision, 0.7 of 90 would be 62 instead of 63.
 */
function nearThreshold(requestsPerUnit: number, nearLimitRatio: number): number {
  const threshold = Math.floor(Math.fround(Math.fround(requestsPerUnit) * Math.fround(nearLimitRatio)));
  // Single precision rounds limits above 2^24 up, too.
  return Math.min(requestsPerUnit, threshold);
}

const CLASSES = {
  fixed_window: FixedWindow,
  sliding_window: SlidingWindow,
  token_bucket: TokenBucket,
  max_concurrent: Concurrent,
} satisfies Readonly<Record<AlgorithmLimit['name'], new (limit: AlgorithmLimit) => Algorithm>>;

/** Makes the algorithm of a limit. */
export function algorithmOf(limit: AlgorithmLimit): Algorithm {
  const counter = new CLASSES[limit.name](limit);
  return limit.blockFor === undefined ? counter : new Blocking(counter, limit.blockFor);
}

/** A limit of a rule; undefined when it is unlimited, or none. */
export function limitOfRule(rule: Rule, limit: RuleLimit | undefined, settings: LimitOptions): Limit | undefined {
  if (limit?.unit === undefined || limit.unlimited) return undefined;
  const path = plainStatisticsKey(rule);
  const isNamed = limit.name !== '' || settings.limitNameFromRule !== true;
  const named = isNamed ? limit : { ...limit, name: path + limitSuffix(rule, limit) };
  return new Limit(named, rule.options, path, settings);
}

/**
 * A limit override of a request: without shadow mode, quota mode and name.
 *
 * @param rule of the limit of the rule that the descriptor matches, what the override keeps
 */
export function limitOfOverride(
  { requestsPerUnit, unit }: { readonly requestsPerUnit: number; readonly unit: Unit },
  rule: Pick<RuleLimit, 'algorithm' | 'burst' | 'postpaid'>,
  settings: LimitOptions,
): Limit {
  const { algorithm, burst, postpaid } = rule;
  const limit = { ...NO_LIMIT, requestsPerUnit, unit: unit.name, algorithm, burst, postpaid, lease: false };
  return new Limit(limit, DEFAULT_RULE_OPTIONS, '', settings);
}
