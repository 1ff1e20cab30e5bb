import type { LimitState } from '../../../limiter/algorithm';
import type { CounterOperation } from '../../../limiter/counter-operation';
import type { SlidingWindow } from '../../../limiter/sliding-window';
import { TokenBucket } from '../../../limiter/token-bucket';
import { type Step, groupLength, lifetimeOf, randomPart, secondsLeft } from '../counting';
import { type CommandOptions, type StepResult, areCounts, stepResult } from './commands';
import { COUNT, GUARDED_COUNT, SLIDING_WINDOW, type Script, TOKEN_BUCKET } from './scripts';

export interface CountOptions extends CommandOptions {
  readonly known: KnownExpiries;
  /** Unix time in microseconds for the algorithms, in tests; undefined: the time of the server. */
  readonly now?: (() => number) | undefined;
}

export interface ScriptCall {
  readonly script: Script;
  readonly steps: readonly Step[];
  /** KEYS: the key of each step with each of these after it. */
  readonly suffixes: readonly string[];
  /** ARGV[1] */
  readonly argument: string;
  /** @throws Error when the reply does not match the call */
  readonly read: (reply: unknown) => readonly StepResult[];
}

/** A step has one key. */
const ONE_KEY = [''];
/** A step has a key for the windows with an even number, and one for those with an odd one. */
const EVEN_AND_ODD = ['_0', '_1'];

/** @param group operations with one script */
export function scriptCall(group: readonly CounterOperation[], options: CountOptions): ScriptCall {
  const { jitter, known } = options;
  const algorithm = group[0]?.algorithm;
  if (algorithm instanceof TokenBucket) return bucketCall(group, options);
  if (algorithm !== undefined) return slidingCall(group, options);
  if (group.some(({ guard }) => guard !== undefined)) {
    const argument = guardedCountArgument(group, jitter);
    return {
      script: GUARDED_COUNT,
      steps: group,
      suffixes: ONE_KEY,
      argument,
      read: (reply) => countsIn(reply, group),
    };
  }
  known.forgetOld();
  const examined: Step[] = [];
  let json = `[${Math.max(1, jitter)},${randomPart(jitter)}`;
  let run: Step | undefined;
  let isRunKnown = false;
  for (let index = 0; index < group.length; index += 1) {
    const step = group[index] as Step;
    const isKnown = known.has(step);
    if (!isKnown) examined.push(step);
    if (run?.hits === step.hits && run.windowSeconds === step.windowSeconds && isRunKnown === isKnown) continue;
    run = step;
    isRunKnown = isKnown;
    const { windowSeconds } = step;
    json += `,${index + 1},"${step.hits}",${lifetimeOf(windowSeconds)},${secondsLeft(windowSeconds)},${isKnown ? 1 : 0}`;
  }
  function read(reply: unknown): readonly StepResult[] {
    const counts = countsIn(reply, group);
    if (areCounts(counts)) known.add(examined);
    return counts;
  }
  return { script: COUNT, steps: group, suffixes: ONE_KEY, argument: `${json}]`, read };
}

function guardedCountArgument(operations: readonly CounterOperation[], jitter: number): string {
  const steps = operations.map(({ hits, windowSeconds, limit }, index) => {
    const group = groupLength(operations, index);
    return `"${hits}",${lifetimeOf(windowSeconds) + randomPart(jitter)},${secondsLeft(windowSeconds)},${limit},${group}`;
  });
  return `[${steps.join()}]`;
}

/** The counts in a reply, or the error of a step in place of its count. */
function countsIn(reply: unknown, steps: readonly Step[]): readonly StepResult[] {
  const list = listIn(reply, steps.length);
  // Allocates nothing in the common case, a list of integers.
  return areCounts(list) ? list : list.map(stepResult);
}

function listIn(reply: unknown, length: number): readonly unknown[] {
  if (Array.isArray(reply) && reply.length === length) return reply as readonly unknown[];
  throw new Error('the reply does not match the script call');
}

/**
 * Milliseconds that a key lives longer than its state matters: the ten seconds in which its expiry is not set again, and as many for
 * a clock that is not exact.
 */
const MARGIN = 20_000;

function bucketCall(group: readonly CounterOperation[], { jitter, known, now }: CountOptions): ScriptCall {
  known.forgetOld();
  const random = randomPart(jitter);
  const examined: Step[] = [];
  const argument = runsOf(group, now, (operation) => {
    const bucket = operation.algorithm as TokenBucket;
    const { span, parts, lifetime, capacity } = bucket;
    const step = { key: operation.key, hits: 1, windowSeconds: lifetime };
    const isKnown = known.has(step);
    if (!isKnown) examined.push(step);
    const milliseconds = (lifetime + random) * 1000 + MARGIN;
    return `${span.whole},${span.part},${parts},${milliseconds},${isKnown ? 1 : 0}${callsOf(operation, (hits) => {
      const { whole, part } = bucket.spanOf(hits);
      // More than fit into the bucket never do.
      return hits > capacity ? `${whole + 1},0` : `${whole},${part}`;
    })}`;
  });
  function read(reply: unknown): readonly StepResult[] {
    const states = statesIn(reply, group, ([whole, part, at], index) => {
      const { parts } = (group[index] as CounterOperation).algorithm as TokenBucket;
      return { whole, part, parts, now: at };
    });
    if (!states.some((state) => state instanceof Error)) known.add(examined);
    return states;
  }
  return { script: TOKEN_BUCKET, steps: group, suffixes: ONE_KEY, argument, read };
}

function slidingCall(group: readonly CounterOperation[], { jitter, now }: CountOptions): ScriptCall {
  const random = randomPart(jitter);
  const argument = runsOf(group, now, (operation) => {
    const { requestsPerUnit, windowSeconds, lifetime } = operation.algorithm as SlidingWindow;
    const milliseconds = (lifetime + random) * 1000 + MARGIN;
    return `${requestsPerUnit},${windowSeconds * 1000},${milliseconds}${callsOf(operation, String)}`;
  });
  function read(reply: unknown): readonly StepResult[] {
    return statesIn(reply, group, ([previous, current, at]) => ({ previous, current, now: at }));
  }
  return { script: SLIDING_WINDOW, steps: group, suffixes: EVEN_AND_ODD, argument, read };
}

/** The argument of a script for operations with an algorithm: see {@link TOKEN_BUCKET}. */
function runsOf(
  group: readonly CounterOperation[],
  now: CountOptions['now'],
  describe: (operation: CounterOperation) => string,
): string {
  let json = `[${now === undefined ? 0 : now()}`;
  let run = '';
  for (let index = 0; index < group.length; index += 1) {
    const described = describe(group[index] as CounterOperation);
    if (described === run) continue;
    run = described;
    json += `,[${index + 1},${run}]`;
  }
  return `${json}]`;
}

/** The calls of an operation, equal ones that follow each other together, each with a comma before it. */
function callsOf({ hits, calls = [hits] }: CounterOperation, describe: (hits: number) => string): string {
  let text = '';
  let equal = 0;
  for (let index = 0; index < calls.length; index += 1) {
    equal += 1;
    const each = calls[index] as number;
    if (calls[index + 1] === each) continue;
    text += `,${describe(each)},${equal}`;
    equal = 0;
  }
  return text;
}

/** Two numbers of each step in a reply, or the error of a step in place of its first one, as states. */
function statesIn(
  reply: unknown,
  group: readonly CounterOperation[],
  stateOf: (numbers: readonly [number, number, now: number], index: number) => LimitState,
): readonly StepResult[] {
  const list = listIn(reply, 2 * group.length + 1);
  const results = areCounts(list) ? list : list.map(stepResult);
  const now = results[0] as number;
  return group.map((_, index) => {
    const [first, second] = [results[2 * index + 1], results[2 * index + 2]] as [number | Error, number];
    return first instanceof Error ? first : stateOf([first, second, now], index);
  });
}

/** After how many milliseconds all keys are forgotten. */
const LIFETIME = 10_000;
/** Most keys, and the most characters of a key that is remembered: together they bound the memory. */
const MAX_KEYS = 32_768;
const MAX_KEY_LENGTH = 256;

/**
 * Keys that were seen to have an expiry within the last ten seconds, and for windows of which length, so that scripts need not examine
 * it at every hit. A key that expires and is created again gets its expiry regardless of this memory. Only the expiry of a key in use
 * that another program removes or shortens is set again up to ten seconds later.
 */
export class KnownExpiries {
  /** The length of the longest window, in seconds. */
  #keys = new Map<string, number>();
  #since = 0;

  /** Forgets the keys when it is time. Called before keys are looked up. */
  forgetOld(): void {
    const now = performance.now();
    if (now - this.#since < LIFETIME) return;
    this.#since = now;
    this.#keys = new Map();
  }

  has({ key, windowSeconds }: Step): boolean {
    return (this.#keys.get(key) ?? 0) >= windowSeconds;
  }

  /** Adds the keys of steps that were counted and whose expiry was examined: those that added hits. */
  add(steps: readonly Step[]): void {
    for (const step of steps) {
      if (this.#keys.size >= MAX_KEYS) return;
      const { key, hits, windowSeconds } = step;
      if (hits > 0 && key.length <= MAX_KEY_LENGTH && !this.has(step)) this.#keys.set(key, windowSeconds);
    }
  }
}
