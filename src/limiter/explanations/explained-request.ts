import type { Rule } from '../../rules/rule-tree';
import { Counter } from '../../statistics/counter';
import { Decision } from '../decision';
import type { LimitedDescriptor } from '../limited-descriptor';
import type { LimiterOptions } from '../options';
import { OverLimitCache } from '../over-limit-cache';
import type { RateLimitRequest } from '../request';
import type { Resolution } from '../resolution';
import type { Verdict } from '../verdict';
import { simulateCounts } from './simulate-counts';

/** What a decision would do with a descriptor. */
export interface ExplainedDescriptor {
  readonly resolution: Resolution;
  /** The rule because of which that one is not applied; of several, the first. */
  readonly replacedBy: Rule | undefined;
}

/** A request up to the store, with nothing counted: the counts that a decision needs, and what it would answer with them. */
export class ExplainedRequest {
  constructor(
    readonly request: RateLimitRequest,
    /** In the order of the request. */
    readonly descriptors: readonly ExplainedDescriptor[],
    /** What a decision would send to the store. */
    readonly operations: readonly LimitedDescriptor[],
    readonly options: LimiterOptions,
    /** The time of the explanation, in Unix seconds. */
    readonly nowSeconds: number,
  ) {}

  /**
   * The verdict of a decision that finds these counts.
   *
   * @param stored by key; to be called once
   */
  verdict(stored: ReadonlyMap<string, number>): Verdict {
    simulateCounts(this.operations, stored);
    const resolutions = this.descriptors.map(({ resolution }) => resolution);
    // With statistics and a local cache of its own, and without offenders: nothing is counted.
    const context = {
      options: { ...this.options, offenders: undefined },
      overLimitCache: new OverLimitCache(0),
      globalShadowMode: new Counter('explanation'),
    };
    return new Decision(context, this.request, resolutions, this.operations, this.nowSeconds).verdict();
  }
}
