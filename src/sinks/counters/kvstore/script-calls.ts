import type { Algorithm } from '../../../counting/algorithms/algorithm';
import { isCalendarEnd } from '../../../counting/windows';
import { type Operation, groupLength } from '../../../counting/operation';
import { SlidingWindow } from '../../../counting/algorithms/sliding';
import { TokenBucket } from '../../../counting/algorithms/bucket';
import { lifetimeOf, randomPart, secondsLeft } from '../expiry';
import { type CommandOptions, type StepResult, areCounts, stepResult } from './commands';
import { DECIDE } from './decide-script';
import type { ScriptArguments, Step } from './encoding';
import { COUNT, GUARDED_COUNT } from './scripts';

export interface CountOptions extends CommandOptions {
  readonly known: KnownExpiries;
  /** The same of keys with the state of an algorithm. */
  readonly knownStates: KnownExpiries;
  /** Unix time in microseconds for the algorithms, in tests; undefined: the time of the server. */
  readonly now?: (() => number) | undefined;
}

export interface ScriptCall extends ScriptArguments {
  /** @throws Error when the reply does not match the call */
  readonly read: (reply: unknown) => readonly StepResult[];
}

/** @param group operations with one script */
export function scriptCall(group: readonly Operation[], options: CountOptions): ScriptCall {
  const { jitter, known } = options;
  if (group[0]?.limit.algorithm !== undefined) return decideCall(group, options);
  if (group.some((each) => each.group !== undefined)) {
    const argument = guardedCountArgument(group, jitter);
    return { script: GUARDED_COUNT, steps: group, argument, read: (reply) => countsIn(reply, group) };
  }
  const examined: Step[] = [];
  let json = `[${Math.max(1, jitter)},${randomPart(jitter)}`;
  let run: Step | undefined;
  let isRunKnown = false;
  for (let index = 0; index < group.length; index += 1) {
    const step = group[index] as Step;
    const isKnown = known.has(step);
    if (!isKnown) examined.push(step);
    const { windowSeconds } = step.limit;
    if (run?.hits === step.hits && run.limit.windowSeconds === windowSeconds && isRunKnown === isKnown) continue;
    run = step;
    isRunKnown = isKnown;
    json += `,${index + 1},"${step.hits}",${lifetimeOf(windowSeconds)},${secondsLeft(windowSeconds)},${isKnown ? 1 : 0}`;
  }
  function read(reply: unknown): readonly StepResult[] {
    const counts = countsIn(reply, group);
    if (areCounts(counts)) known.add(examined);
    return counts;
  }
  return { script: COUNT, steps: group, argument: `${json}]`, read };
}

function guardedCountArgument(operations: readonly Operation[], jitter: number): string {
  const steps = operations.map(({ hits, limit: { windowSeconds, requestsPerUnit }, group }, index) => {
    const size = groupLength(operations, index) * (group?.isOver ? -1 : 1);
    return `"${hits}",${lifetimeOf(windowSeconds) + randomPart(jitter)},${secondsLeft(windowSeconds)},${requestsPerUnit},${size}`;
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

/** Operations with algorithms; those of a common guard are one step of the script. */
function decideCall(group: readonly Operation[], { jitter, knownStates: known, now }: CountOptions): ScriptCall {
  known.forgetOld();
  const random = randomPart(jitter);
  const examined: Step[] = [];
  let json = `[${now === undefined ? 0 : now()}`;
  let [run, length] = ['', 0];
  for (let index = 0; index < group.length;) {
    const end = index + groupLength(group, index);
    const calls = equalCalls(group[index] as Operation);
    let step = `[${calls.map(({ times }) => times).join()}]`;
    for (; index < end; index += 1) step += `,[${numbersOf(group[index] as Operation, calls)}]`;
    if (step !== run && length > 0) {
      json += `,[${length},${run}]`;
      length = 0;
    }
    run = step;
    length += 1;
  }
  return { script: DECIDE, steps: group.flatMap(keysOf), argument: `${json},[${length},${run}]]`, read };

  /** The kind of a limit, and its numbers. */
  function numbersOf({ key, limit }: Operation, calls: readonly EqualCalls[]): string {
    const { windowSeconds } = limit;
    const algorithm = limit.algorithm as Algorithm;
    const { lifetime, requestsPerUnit } = algorithm;
    const milliseconds = (lifetime + random) * 1000 + MARGIN;
    const hits = calls.map((call) => call.hits);
    if (algorithm instanceof SlidingWindow) {
      const total = totalOf(calls, hits, requestsPerUnit);
      return `2,${total},${requestsPerUnit},${algorithm.windowSeconds * 1000},${milliseconds},${hits.join()}`;
    }
    const isBucket = algorithm instanceof TokenBucket;
    const step = { key, hits: 1, limit: isBucket ? { requestsPerUnit, windowSeconds: lifetime } : limit };
    const isKnown = known.has(step) ? 1 : 0;
    if (isKnown === 0) examined.push(step);
    if (!isBucket) {
      const expiry = lifetimeOf(windowSeconds) + random;
      const total = totalOf(calls, hits, requestsPerUnit);
      return `3,${total},${requestsPerUnit},${expiry},${secondsLeft(windowSeconds)},${isKnown},${hits.join()}`;
    }
    const { span, parts, capacity } = algorithm;
    // More than fit into the bucket never do.
    const spans = hits.map((each) => (each > capacity ? { whole: span.whole + 1, part: 0 } : algorithm.spanOf(each)));
    const wholes = spans.map(({ whole }) => whole);
    const total = parts === 1 && isKnown === 1 ? totalOf(calls, wholes, span.whole) : 0;
    const taken = spans.map(({ whole, part }) => `${whole},${part}`).join();
    return `1,${total},${span.whole},${span.part},${parts},${milliseconds},${isKnown},${taken}`;
  }
  function read(reply: unknown): readonly StepResult[] {
    const states = statesIn(reply, group);
    if (!states.some((state) => state instanceof Error)) known.add(examined);
    return states;
  }
}

/** Calls that follow each other. */
interface EqualCalls {
  /** Of each. */
  readonly hits: number;
  times: number;
}

function equalCalls({ hits, calls = [hits] }: Operation): readonly EqualCalls[] {
  const runs: EqualCalls[] = [];
  for (const each of calls) {
    const last = runs.at(-1);
    if (last?.hits === each) last.times += 1;
    else runs.push({ hits: each, times: 1 });
  }
  return runs;
}

/** What calls take together, if that fits into the limit: then it may be added at once; otherwise 0. @param taken by each of equal calls */
function totalOf(calls: readonly EqualCalls[], taken: readonly number[], most: number): string {
  let total = 0;
  for (let index = 0; index < calls.length; index += 1) {
    if (taken[index]! <= 0) return '0';
    total += taken[index]! * calls[index]!.times;
  }
  return total <= most ? `"${total}"` : '0';
}

/** A sliding window has a key for the windows with an even number, and one for those with an odd one. */
function keysOf(operation: Operation): readonly Pick<Step, 'key'>[] {
  if (!(operation.limit.algorithm instanceof SlidingWindow)) return [operation];
  return [{ key: `${operation.key}_0` }, { key: `${operation.key}_1` }];
}

/** The states in a reply, or the error of an operation in place of its state. */
function statesIn(reply: unknown, group: readonly Operation[]): readonly StepResult[] {
  const list = listIn(reply, 2 * group.length + 1);
  const results = areCounts(list) ? list : list.map(stepResult);
  const now = results[0] as number;
  return group.map(({ limit: { algorithm } }, index) => {
    const [first, second] = [results[2 * index + 1], results[2 * index + 2]] as [number | Error, number];
    if (first instanceof Error) return first;
    if (algorithm instanceof TokenBucket) return { whole: first, part: second, parts: algorithm.parts, now };
    return { previous: first, current: second, now };
  });
}

/** After how many milliseconds all keys are forgotten: those of windows, whose expiry stays; and others, and when there are too many. */
const LIFETIME = 60_000;
const SHORT_LIFETIME = 10_000;
/** Most keys, and the most characters of a key that is remembered: together they bound the memory. */
const MAX_KEYS = 32_768;
const MAX_KEY_LENGTH = 256;

/**
 * Keys that were seen to have an expiry within the last minute, or ten seconds, and for windows of which length, so that scripts need not
 * examine it at every hit. A key that expires and is created again gets its expiry regardless of this memory. Only the expiry of a key in use
 * that another program removes or shortens is set again that much later.
 */
export class KnownExpiries {
  readonly #lifetime: number;
  /** The length of the longest window, in seconds, or the latest end of one of the calendar: the one that was seen last. */
  #keys = new Map<string, number>();
  #since = performance.now();

  /** @param setAgain whether the expiry is set again while a key is in use, as that of the state of an algorithm */
  constructor(setAgain = false) {
    this.#lifetime = setAgain ? SHORT_LIFETIME : LIFETIME;
  }

  /** Forgets the keys when it is time. Called before keys are looked up. */
  forgetOld(): void {
    const now = performance.now();
    const lifetime = this.#keys.size < MAX_KEYS ? this.#lifetime : SHORT_LIFETIME;
    if (now - this.#since < lifetime) return;
    this.#since = now;
    this.#keys = new Map();
  }

  has({ key, limit: { windowSeconds } }: Step): boolean {
    const known = this.#keys.get(key);
    return known !== undefined && known >= windowSeconds && isCalendarEnd(known) === isCalendarEnd(windowSeconds);
  }

  /** Adds the keys of steps that were counted and whose expiry was examined: those that added hits. */
  add(steps: readonly Step[]): void {
    for (const step of steps) {
      if (this.#keys.size >= MAX_KEYS) return;
      const { key, hits, limit } = step;
      if (hits > 0 && key.length <= MAX_KEY_LENGTH && !this.has(step)) this.#keys.set(key, limit.windowSeconds);
    }
  }
}
