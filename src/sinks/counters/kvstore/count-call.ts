import { type Algorithm, type Block, type CountedState, type LimitState } from '../../../counting/algorithms/algorithm';
import { Blocking, NO_BLOCK } from '../../../counting/algorithms/blocking';
import { TokenBucket } from '../../../counting/algorithms/bucket';
import { mostOf } from '../../../counting/group';
import { areOneWindow } from '../../../counting/windows';
import {
  type Counted,
  type CountedLimit,
  type Operation,
  groupLength,
  isGrantOf,
  isStoredOf,
} from '../../../counting/operation';
import { lifetimeOf, randomPart, secondsLeft } from '../expiry';
import { type CommandOptions, type StepResult, joined } from './commands';
import { BLOCK, LIMIT, type Numbers, numbersOf, storedAs } from './count-algorithms';
import { CALL, COUNT, DECIDED, RUN, RunKind, STOPPED } from './count-script';
import type { ScriptArguments, ScriptCommand, Step } from './protocol';
import { checkedValues, isTime } from './replies';
import { InvalidReply } from './store-error';
import type { TtlCache } from './ttl-cache';

export interface CountOptions extends CommandOptions {
  readonly known: TtlCache;
  /** The known expiries of keys with the state of an algorithm. */
  readonly knownStates: TtlCache;
  /** Unix time in microseconds for the algorithms, in tests; undefined: the time of the server. */
  readonly now?: (() => number) | undefined;
}

/** How many seconds a key lives longer than its state matters. */
const MARGIN = 20;
/** How many of them are left when its expiry was examined: it is examined again after ten seconds. */
const LEAST_MARGIN = 10;

/** A limit of a call: its number among them, from 1, and its numbers in the script. */
interface KnownLimit {
  readonly number: number;
  readonly numbers: Numbers;
}

/** A call of the script that applies operations. */
export class CountCall implements ScriptArguments {
  readonly script = COUNT;
  readonly steps: readonly Pick<Step, 'key'>[];
  readonly args: string[];
  readonly #operations: readonly Operation[];
  readonly #options: CountOptions;
  readonly #random: number;
  readonly #examined: Step[] = [];
  readonly #examinedStates: Step[] = [];
  readonly #limits: string[] = [];
  readonly #known = new Map<CountedLimit, KnownLimit>();
  /** How many values the reply has. */
  #values: number;
  #runs = '';
  /** The run that the next step may belong to: what its steps have in common, and how many there are so far. */
  #run = '';
  #times = 0;
  /** The last counted step, and what is written of it. */
  #counted: { readonly step: Step; readonly isKnown: boolean; readonly run: string } | undefined;

  constructor(operations: readonly Operation[], options: CountOptions) {
    this.#operations = operations;
    this.#options = options;
    this.#random = randomPart(options.jitter);
    this.#values = operations.length;
    for (let index = 0; index < operations.length;) {
      const operation = operations[index] as Operation;
      const end = index + groupLength(operations, index);
      if (operation.limit.algorithm !== undefined) this.#decide(operations.slice(index, end));
      else if (operation.group !== undefined) this.#stop(operations.slice(index, end));
      else if (reservesHits(operation)) this.#countAndReserve(operation);
      else this.#count(operation);
      index = end;
    }
    this.#endRun();
    this.steps = this.#limits.length > 0 ? joined(operations.map(keysOf)) : operations;
    const call = CALL.write({ jitter: Math.max(1, options.jitter), random: this.#random });
    this.args = [`[${call}${this.#runs}]`];
    if (this.#limits.length === 0) return;
    this.#values += 1;
    this.args.push(`[${this.#limits.join()}]`);
    if (options.now !== undefined) this.args.push(String(options.now()));
  }

  /** @throws InvalidReply when the call cannot have the reply */
  read(reply: unknown, command: ScriptCommand): readonly StepResult[] {
    const operations = this.#operations;
    // Allocates nothing in the common case.
    const values = checkedValues(reply, this.#values, command);
    const results = values.length === operations.length ? values : resultsIn(values, operations, command);
    if (!values.some((value) => value instanceof Error)) {
      this.#options.known.add(this.#examined);
      this.#options.knownStates.add(this.#examinedStates);
    }
    return results;
  }

  #count(step: Step): void {
    const { hits, limit } = step;
    const isKnown = this.#options.known.has(step);
    if (!isKnown) this.#examined.push(step);
    const last = this.#counted;
    if (last?.step.hits !== hits || last.isKnown !== isKnown || !areOneWindow(last.step.limit, limit)) {
      const values = { hits: `"${hits}"`, expiry: lifetimeOf(limit), left: secondsLeft(limit) };
      this.#counted = { step, isKnown, run: RunKind[isKnown ? 'addToExpiring' : 'count'].write(values) };
    }
    this.#add(this.#counted!.run);
  }

  #countAndReserve({ hits, limit, lease }: Operation): void {
    const [expiry, left] = [lifetimeOf(limit) + this.#random, secondsLeft(limit)];
    const values = { hits: `"${hits}"`, expiry, left, limit: limit.requestsPerUnit, wants: lease!.wants };
    this.#add(RunKind.countAndReserve.write(values));
    this.#values += 1;
  }

  /** The operations of a group with the mode `stop_when_over`: a run, to which no others belong. */
  #stop(operations: readonly Operation[]): void {
    this.#endRun();
    let run = RunKind.stop.write({ isOver: operations[0]?.group?.isOver === true });
    for (const operation of operations) {
      const { hits, limit } = operation;
      const expiry = lifetimeOf(limit) + randomPart(this.#options.jitter);
      run += `,${STOPPED.write({ hits, expiry, left: secondsLeft(limit), limit: mostOf(operation) })}`;
    }
    this.#runs += `,${RUN.write({ times: operations.length, kind: run })}`;
  }

  /** An operation with an algorithm, or those of a group. */
  #decide(operations: readonly Operation[]): void {
    const first = operations[0] as Operation;
    const calls = equalCalls(first);
    let times = '';
    for (const call of calls) times += `${times === '' ? '[' : ','}${call.times}`;
    let run = decision(operations, `${times}]`);
    const isExact = reservesHits(first) || first.onlyInWindow !== undefined;
    for (const operation of operations) run += `,${this.#decided(operation, calls, isExact)}`;
    this.#values += reservesHits(first) ? 2 : operations.length * (isBlocking(operations) ? 3 : 1);
    this.#add(run);
  }

  /** @param isExact whether what all calls take may not be taken at once */
  #decided(operation: Operation, calls: readonly EqualCalls[], isExact: boolean): string {
    const { key, limit } = operation;
    const algorithm = counterOf(limit.algorithm!);
    const { requestsPerUnit, lifetime } = algorithm;
    const isReport = isReported(operation);
    const stored = storedAs(algorithm);
    const { number, numbers } = this.#knownLimit(limit);
    const step = { key, hits: 1, limit: stored.isOfWindow ? limit : { requestsPerUnit, lengthSeconds: lifetime } };
    // The expiry of what is in debt depends on the debt.
    const isKnown = stored.isExpiryKept || (algorithm.postpaid !== true && this.#options.knownStates.has(step));
    if (!isKnown) this.#examinedStates.push(step);
    let [spans, total] = ['', 0];
    for (const { hits, times } of calls) {
      const { whole, part } = stored.takenBy?.(algorithm, hits, isReport) ?? { whole: hits, part: 0 };
      spans += `${spans === '' ? '[' : ','}${whole},${part}`;
      total = whole >= 0 ? total + whole * times : Infinity;
    }
    if (isExact || total > (isReport ? numbers.ceiling : numbers.most) || numbers.parts > 1) total = 0;
    return DECIDED.write({ number, total, text: `"${total}"`, isKnown, spans: `${spans}]` });
  }

  #knownLimit(limit: CountedLimit): KnownLimit {
    const before = this.#known.get(limit);
    if (before !== undefined) return before;
    const numbers = numbersOf(counterOf(limit.algorithm!));
    const number = this.#limits.push(`[${limitOf(limit, this.#random, numbers)}${blockOf(limit)}]`);
    const known = { number, numbers };
    this.#known.set(limit, known);
    return known;
  }

  #add(run: string): void {
    if (run !== this.#run) this.#endRun();
    this.#run = run;
    this.#times += 1;
  }

  #endRun(): void {
    if (this.#times > 0) this.#runs += `,${RUN.write({ times: this.#times, kind: this.#run })}`;
    this.#times = 0;
  }
}

/** What counts the hits of a limit while it does not block. */
function counterOf(algorithm: Algorithm): Algorithm {
  return algorithm instanceof Blocking ? algorithm.counter : algorithm;
}

/** Whether a limit of a step blocks, so that the step is one of its own kind. */
function isBlocking(operations: readonly Operation[]): boolean {
  for (const { blockKey } of operations) if (blockKey !== undefined) return true;
  return false;
}

/** What follows a limit that blocks. */
function blockOf({ algorithm }: CountedLimit): string {
  if (!(algorithm instanceof Blocking)) return '';
  const { first, factor, most, forgottenAfter } = algorithm.blockFor;
  const values = { firstBlock: first * 1e6, factor, longest: most * 1e6, forgotten: forgottenAfter * 1e6 };
  return `,${BLOCK.write(values)}`;
}

/** A limit for the script. @param random the random part of expiries, in seconds */
export function limitOf(
  limit: CountedLimit,
  random: number,
  numbers: Numbers = numbersOf(counterOf(limit.algorithm!)),
): string {
  const algorithm = counterOf(limit.algorithm!);
  const { name, lifetime } = algorithm;
  const expires = storedAs(algorithm).isOfWindow
    ? { expiry: lifetimeOf(limit) + random, left: secondsLeft(limit) }
    : { expiry: lifetime + random + MARGIN, left: lifetime + LEAST_MARGIN };
  return LIMIT.write({ algorithm: `"${name}"`, ...numbers, ...expires });
}

/** Whether its hits count also beyond the limit. What is in debt is changed in no other way. */
function isReported({ purpose, limit }: Operation): boolean {
  return purpose === 'report' || limit.algorithm?.postpaid === true;
}

/** Calls that follow each other. */
interface EqualCalls {
  /** The hits of each of them. */
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

/** The keys of a counter, that of a block first. Braces in its key keep them in one slot of a cluster. */
export function keysOf(operation: Counted): readonly Pick<Step, 'key'>[] {
  const { key, blockKey, limit } = operation;
  const suffixes = limit.algorithm && storedAs(counterOf(limit.algorithm)).suffixes;
  const keys = suffixes?.map((suffix) => ({ key: `${key}${suffix}` })) ?? [operation];
  return blockKey === undefined ? keys : [{ key: blockKey }, ...keys];
}

/**
 * The counts and states in a reply, or the error of an operation in place of either. What was taken for later calls is
 * written into the operation.
 *
 * @throws InvalidReply when a limit cannot have a state
 */
function resultsIn(
  values: readonly (number | Error)[],
  operations: readonly Operation[],
  command: ScriptCommand,
): readonly StepResult[] {
  const now = values.at(-1) as number;
  const hasTime = operations.some(({ limit }) => limit.algorithm !== undefined);
  if (hasTime && !isTime(now)) throw new InvalidReply('has a time that no clock shows', command);
  let at = 0;
  /** Where the states of the limits of a step with algorithms end, where the block of the next one is, and its end. */
  let [states, blocks, end] = [0, 0, 0];
  return operations.map((operation, index) => {
    const { algorithm } = operation.limit;
    const [first, second] = [values[at], values[at + 1]] as [number | Error, number];
    if (algorithm !== undefined && at >= end) {
      const step = operations.slice(index, index + groupLength(operations, index));
      states = at + 2 * step.length;
      blocks = states;
      end = isBlocking(step) ? states + 2 * step.length : states;
    }
    const block = { end: values[blocks] as number, length: values[blocks + 1] as number };
    at += algorithm === undefined ? 1 : 2;
    blocks += 2;
    if (algorithm !== undefined && at === states) at = end;
    const granted = reservesHits(operation) ? values[at] : undefined;
    if (granted !== undefined) at += 1;
    if (first instanceof Error) return first;
    const result = algorithm === undefined ? first : stateOf(algorithm, { first, second, block, now });
    if (!isStoredOf(operation, result)) throw new InvalidReply('has a state that the limit cannot have', command);
    if (granted !== undefined && !isGrantOf(operation, granted, result))
      throw new InvalidReply('grants hits that were not to be had', command);
    if (granted !== undefined) operation.lease!.granted = granted;
    return result;
  });
}

interface ReadState {
  readonly first: number;
  readonly second: number;
  /** The block of a limit that blocks. */
  readonly block: Block;
  readonly now: number;
}

function stateOf(algorithm: Algorithm, read: ReadState): LimitState {
  const { first, second, block, now } = read;
  if (algorithm instanceof Blocking)
    return {
      counted: stateOf(algorithm.counter, read) as CountedState,
      block: block.length === 0 ? NO_BLOCK : block,
      now,
    };
  if (algorithm instanceof TokenBucket) return { whole: first, part: second, parts: algorithm.parts, now };
  return { previous: second, current: first, now };
}

/** Whether the operation takes hits for later calls; one that gives hits back takes none. */
export function reservesHits({ lease, onlyInWindow }: Operation): boolean {
  return lease !== undefined && lease.wants > 0 && onlyInWindow === undefined;
}

/** What a run begins with that decides an operation, or a group. */
function decision(operations: readonly Operation[], calls: string): string {
  const first = operations[0] as Operation;
  const size = operations.length;
  const { limit, lease, onlyInWindow: onlyIn, endsBlock } = first;
  if (isBlocking(operations)) return RunKind.block.write({ size, calls, endsBlock, isReport: isReported(first) });
  if (onlyIn !== undefined) return RunKind.giveBack.write({ size, calls, onlyIn });
  if (isReported(first)) return RunKind.report.write({ size, calls });
  if (!reservesHits(first)) return RunKind.decide.write({ size, calls });
  const { wants, milliseconds } = lease!;
  const perHit = limit.algorithm instanceof TokenBucket ? limit.algorithm.microsecondsPerHit : 1;
  // Not spread: that takes microseconds.
  return RunKind.decideAndReserve.write({ size, calls, wants, during: Math.ceil(milliseconds * 1000), perHit });
}
