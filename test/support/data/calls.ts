import { windowOf } from './operations';
import type { BatchCall } from '../../../src/counting/batch';
import type { DecisionError } from '../../../src/counting/decision-error';
import { MOST_REPORTED } from '../../../src/counting/algorithms/algorithm';
import { algorithmOf } from '../../../src/counting/limit';
import { type Group, LARGEST_COUNT, Operation } from '../../../src/counting/operation';
import fc from './properties';

/** A call of a batch, with what becomes of it. */
export class TestCall implements BatchCall {
  isCancelled = false;
  /** The counts of its operations, or why it has failed. */
  outcome: readonly number[] | DecisionError | undefined;

  constructor(readonly operations: readonly Operation[]) {}

  settle(): void {
    this.outcome = this.operations.map(({ countAfter }) => countAfter);
  }

  fail(error: DecisionError): void {
    this.outcome = error;
  }
}

/** Limits with algorithms, each on a key of its own. */
const ALGORITHMS = (
  [
    ['fixed', { name: 'fixed_window', requestsPerUnit: 3, lengthSeconds: 3600, burst: undefined }],
    ['sliding', { name: 'sliding_window', requestsPerUnit: 4, lengthSeconds: 10, burst: undefined }],
    ['bucket', { name: 'token_bucket', requestsPerUnit: 3, lengthSeconds: 7, burst: 5 }],
    ['slow', { name: 'token_bucket', requestsPerUnit: 7, lengthSeconds: 3600, burst: undefined }],
    ['slower', { name: 'token_bucket', requestsPerUnit: 5, lengthSeconds: 3600, burst: undefined }],
    ['postpaid', { name: 'token_bucket', requestsPerUnit: 60, lengthSeconds: 60, burst: undefined, postpaid: true }],
    ['parts', { name: 'token_bucket', requestsPerUnit: 7, lengthSeconds: 60, burst: 9, postpaid: true }],
  ] as const
).map(([name, limit]) => ({ name, algorithm: algorithmOf(limit) }));

/** An operation on a key of this name. */
type Sketch = Pick<Operation, 'hits' | 'limit' | 'purpose'> & { readonly name: string };

/** A group of operations, or one without a group. */
interface Step {
  readonly group: Group | undefined;
  readonly operations: readonly Sketch[];
}

/** A call: see {@link operationsOf}. */
export type CallSketch = readonly Step[];

/** −0 are negative hits, too: in a group, they are not compared with the limit. */
export const FEW_HITS = fc.oneof({ weight: 6, arbitrary: fc.integer({ min: -6, max: 6 }) }, fc.constant(-0));
/** Which saturate counters. */
export const MANY_HITS = fc.constantFrom(
  1,
  0,
  -0,
  -1,
  2 ** 32,
  LARGEST_COUNT,
  LARGEST_COUNT - 2 ** 32,
  2 ** 52,
  -LARGEST_COUNT,
);

export interface CallOptions {
  readonly hits?: fc.Arbitrary<number>;
  /** Of the limits without an algorithm: see {@link windowOf}. */
  readonly windows?: readonly number[];
  readonly hasAlgorithms?: boolean;
}

/** Calls of operations of every kind, which often have the same keys. */
export function anyCall(options: CallOptions = {}): fc.Arbitrary<CallSketch> {
  const { hits = FEW_HITS, windows = [3600], hasAlgorithms = true } = options;
  const counted = fc
    .record({
      name: fc.constantFrom('a', 'b', 'c'),
      hits,
      requestsPerUnit: fc.integer({ min: 0, max: 12 }),
      seconds: fc.constantFrom(...windows),
    })
    .map(({ name, hits: own, requestsPerUnit, seconds }): Sketch => {
      return { name, hits: own, limit: { requestsPerUnit, ...windowOf(seconds) }, purpose: undefined };
    });
  const alone = fc.tuple(counted, fc.boolean()).map(([operation, isServed]): Step => {
    return { group: undefined, operations: [isServed ? served(operation) : operation] };
  });
  const stopped = fc
    .tuple(fc.array(counted, { minLength: 1, maxLength: 4 }), fc.boolean(), fc.boolean())
    .map(([operations, isOver, areAsks]): Step => {
      const asked = operations.map((each) => (each.hits > 0 ? each : served(each)));
      return { group: { mode: 'stop_when_over', isOver }, operations: areAsks ? asked : operations };
    });
  const decided = fc
    .tuple(fc.shuffledSubarray(ALGORITHMS.slice(0, 4), { minLength: 1, maxLength: 3 }), hits)
    .map(([limits, own]): Step => ({ group: { mode: 'all_or_nothing' }, operations: sketches(limits, own) }));
  const decidedAlone = fc
    .tuple(fc.constantFrom(...ALGORITHMS), hits, fc.boolean())
    .map(([limit, own, isServed]): Step => {
      const operations = sketches([limit], own);
      const { postpaid } = limit.algorithm;
      return { group: undefined, operations: isServed || postpaid === true ? operations.map(served) : operations };
    });
  const steps = hasAlgorithms ? [alone, alone, stopped, decided, decidedAlone] : [alone, stopped];
  return fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 3 });
}

/** What a postpaid limit makes of it: hits that are given back, also −0, are neither asks nor reports. */
function served(sketch: Sketch): Sketch {
  const { hits } = sketch;
  if (hits < 0 || Object.is(hits, -0)) return sketch;
  return { ...sketch, hits: Math.min(MOST_REPORTED, hits), purpose: hits === 0 ? 'ask' : 'report' };
}

function sketches(limits: typeof ALGORITHMS, hits: number): readonly Sketch[] {
  return limits.map(({ name, algorithm }) => {
    const { requestsPerUnit, lengthSeconds } = algorithm;
    return { name, hits, limit: { requestsPerUnit, lengthSeconds, algorithm }, purpose: undefined };
  });
}

/** New operations of a call, which each simulation needs for itself. */
export function operationsOf(call: CallSketch, keyOf = (name: string) => name): readonly Operation[] {
  return call.flatMap(({ group: sketch, operations }) => {
    // Groups are compared by identity.
    const group = sketch && { ...sketch };
    return operations.map(({ name, hits, limit, purpose }) =>
      Object.assign(new Operation(limit, keyOf(name), hits), { group, purpose }),
    );
  });
}

/** What the operations of a call have become. All counts above the largest limit, 2^32 − 1, are judged alike. */
export function resultsOf(operations: readonly Operation[]) {
  return operations.map(({ key, countAfter, outcome }) => ({
    key,
    after: Math.min(countAfter, 2 ** 32),
    ...outcome,
    state: undefined,
  }));
}
