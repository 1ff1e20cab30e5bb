import type { Level } from './level';
import type { JsonObject, RuleConfig } from './rule-config';
import { type Unit, unitByName } from './unit';
import { Wildcard } from './wildcard';

/** The `rate_limit` block of a rule. */
export interface RuleLimit {
  /** Undefined only when unlimited. */
  readonly unit: Unit | undefined;
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  readonly name: string;
  readonly replaces: readonly string[];
}

/** One rule in its place in the tree. */
export class Rule {
  readonly key: string;
  /** Empty: any value matches. */
  readonly value: string;
  readonly wildcard: Wildcard | undefined;
  /** Undefined: no limit; whitelisted, or only a placeholder for nested rules. */
  readonly limit: RuleLimit | undefined;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly shareThreshold: boolean;
  readonly metadata: JsonObject | undefined;
  /** The rules of the next level; undefined when there are none. */
  nested: Level | undefined;
  /** What the limiter works out once for this rule and keeps here, so that a decision finds it without a look-up. */
  bound: object | undefined;

  constructor(
    config: RuleConfig,
    readonly domain: string,
    readonly parent: Rule | undefined,
  ) {
    this.key = config.key;
    this.value = config.value;
    this.wildcard = config.value.includes('*') ? new Wildcard(config.value) : undefined;
    this.limit = config.rateLimit && {
      ...config.rateLimit,
      unit: config.rateLimit.unit && unitByName(config.rateLimit.unit),
    };
    this.shadowMode = config.shadowMode;
    this.quotaMode = config.quotaMode;
    this.detailedMetric = config.detailedMetric;
    this.valueToMetric = config.valueToMetric;
    this.shareThreshold = config.shareThreshold;
    this.metadata = config.metadata;
    this.nested = undefined;
    this.bound = undefined;
  }

  /** The rules from the top level down to this one. */
  get path(): readonly Rule[] {
    return this.parent === undefined ? [this] : [...this.parent.path, this];
  }

  /** Whether the rule says which one value it matches. */
  get isExplicit(): boolean {
    return this.value !== '' && this.wildcard === undefined;
  }
}
