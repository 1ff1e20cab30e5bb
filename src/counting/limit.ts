import { type CalendarUnit, type CalendarWindows, calendarWindows } from '../rules/calendar';
import {
  type ALGORITHMS,
  type AlgorithmName,
  type CalendarConfig,
  DEFAULT_RULE_OPTIONS,
  type FailurePolicy,
  type RuleLimit,
  type RuleOptions,
} from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import { limitSuffix, plainStatisticsKey } from '../rules/statistics-key';
import { UNITS, type Unit } from '../rules/unit';
import type { Algorithm, AlgorithmLimit } from './algorithms/algorithm';
import { TokenBucket } from './algorithms/bucket';
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

/** A limit as the response contains it. */
export interface CurrentLimit {
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  /** How many units the window has; 1 for a limit override. */
  readonly unitMultiplier: number;
  /** Undefined: the window has a fixed length. */
  readonly calendar?: CalendarConfig | undefined;
  /** Undefined: hits are counted in fixed windows. */
  readonly algorithm?: AlgorithmName | undefined;
  /** Of a token bucket with another burst than `requestsPerUnit`. */
  readonly burst?: number | undefined;
  /** The rule's `name`; without one, its path with LIMIT_NAME_FROM_RULE. Otherwise empty, as for a limit override. */
  readonly name: string;
}

/** Where a limit comes from. */
interface LimitSource {
  /** The path of the rule in its file, as `/rlconfig` shows it: `domain.key_value.key2`. Empty for a limit override. */
  readonly path: string;
  readonly options: RuleOptions;
  readonly algorithm: (typeof ALGORITHMS)[number] | undefined;
  readonly burst: number | undefined;
  readonly lease: boolean;
}

/**
 * The limit of a rule or of a request, from its match to its answer: computed once per rule, or per request for a limit
 * override.
 */
export class Limit implements CountedLimit {
  readonly path: string;
  /** Those of its rule. */
  readonly options: RuleOptions;
  readonly isOneOfSeveral: boolean;
  /** Also for the callers for which the rule is not enforced. */
  readonly shadowMode: boolean;
  readonly onStoreFailure: FailurePolicy;
  readonly lease: boolean;
  readonly requestsPerUnit: number;
  /** Undefined: the window has a fixed length. */
  readonly calendar: CalendarWindows | undefined;
  /** Undefined: hits are counted in fixed windows. For these, there is one only in a rule with `all_or_nothing`. */
  readonly algorithm: Algorithm | undefined;
  /** The most hits that can count at once: `requestsPerUnit`, of a token bucket its burst. */
  readonly capacity: number;
  /** Counts above this value are near the limit. */
  readonly nearThreshold: number;
  /** The limit as the response contains it. */
  readonly currentLimit: CurrentLimit;
  /** The length of a window in seconds; of one of the calendar, about. */
  readonly lengthSeconds: number;

  constructor(
    limit: CurrentLimit,
    { path, options, algorithm: name, burst, lease }: LimitSource,
    settings: LimitOptions,
  ) {
    const { requestsPerUnit, unit, unitMultiplier, calendar } = limit;
    const policy = options.onStoreFailure ?? settings.onStoreFailure ?? 'error';
    this.path = path;
    this.options = options;
    this.isOneOfSeveral = options.hasLimitList;
    this.shadowMode = options.shadowMode || settings.isInShadow === true;
    // `local` counts in fixed windows only.
    this.onStoreFailure = policy === 'local' && name !== undefined ? 'error' : policy;
    this.lease = lease;
    this.requestsPerUnit = requestsPerUnit;
    this.calendar = calendar && calendarWindows(unit.name as CalendarUnit, calendar);
    this.lengthSeconds = unitMultiplier * unit.seconds;
    this.algorithm = name && algorithmOf({ name, requestsPerUnit, windowSeconds: this.lengthSeconds, burst });
    this.capacity = this.algorithm?.capacity ?? requestsPerUnit;
    this.nearThreshold = nearThreshold(this.capacity, settings.nearLimitRatio);
    this.currentLimit =
      name === undefined || name === 'fixed_window'
        ? limit
        : { ...limit, algorithm: name, ...(this.capacity !== requestsPerUnit && { burst: this.capacity }) };
  }

  /**
   * See {@link CountedLimit.windowSeconds}. The window of the calendar may have ended since; the next one's end removes
   * the counter later.
   */
  get windowSeconds(): number {
    return this.calendar === undefined ? this.lengthSeconds : this.calendar.end;
  }

  /** Whether it counts in fixed windows, also where an algorithm decides them together with other limits. */
  get isFixedWindow(): boolean {
    return this.currentLimit.algorithm === undefined;
  }

  /** Higher the more it allows: what tells a limit that was raised from the one before. */
  get allowance(): number {
    return this.algorithm === undefined ? this.requestsPerUnit : this.requestsPerUnit * this.capacity;
  }

  /** When the window that contains a time has begun, in Unix seconds. */
  startOfWindow(nowSeconds: number): number {
    return this.calendar === undefined
      ? windowStart(nowSeconds, this.lengthSeconds)
      : this.calendar.at(nowSeconds).start;
  }

  /** When it ends. */
  endOfWindow(nowSeconds: number): number {
    return this.calendar === undefined
      ? windowStart(nowSeconds, this.lengthSeconds) + this.lengthSeconds
      : this.calendar.at(nowSeconds).end;
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
} satisfies Readonly<Record<AlgorithmLimit['name'], new (limit: AlgorithmLimit) => Algorithm>>;

/** Makes the algorithm of a limit. */
export function algorithmOf(limit: AlgorithmLimit): Algorithm {
  return new CLASSES[limit.name](limit);
}

/** A limit of a rule; undefined when it is unlimited, or none. */
export function limitOfRule(rule: Rule, limit: RuleLimit | undefined, settings: LimitOptions): Limit | undefined {
  if (limit?.unit === undefined || limit.unlimited) return undefined;
  const { limitNameFromRule = false, limitTried, leases = 'off' } = settings;
  const { requestsPerUnit, unit, unitMultiplier, calendar, algorithm, burst, name } = limit;
  const { options } = rule;
  const path = plainStatisticsKey(rule);
  return new Limit(
    {
      requestsPerUnit: limitTried ?? requestsPerUnit,
      unit: UNITS[unit],
      unitMultiplier,
      calendar,
      name: name === '' && limitNameFromRule ? path + limitSuffix(rule, limit) : name,
    },
    {
      path,
      options,
      algorithm: algorithm ?? (options.allOrNothing ? 'fixed_window' : undefined),
      burst,
      lease: leases !== 'off' && !options.allOrNothing && (limit.lease ?? leases === 'auto'),
    },
    settings,
  );
}

/**
 * A limit override of a request: without shadow mode, quota mode and name.
 *
 * @param rule the limit of the rule that the descriptor matches, if it has an algorithm
 */
export function limitOfOverride(
  { requestsPerUnit, unit }: { readonly requestsPerUnit: number; readonly unit: Unit },
  rule: RuleLimit | undefined,
  settings: LimitOptions,
): Limit {
  return new Limit(
    { requestsPerUnit: settings.limitTried ?? requestsPerUnit, unit, unitMultiplier: 1, name: '' },
    { path: '', options: DEFAULT_RULE_OPTIONS, algorithm: rule?.algorithm, burst: rule?.burst, lease: false },
    settings,
  );
}
