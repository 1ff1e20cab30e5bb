import type { CounterOperation } from '../../../limiter/counter-operation';
import { type Step, groupLength, secondsLeft, randomPart } from '../counting';
import type { Connection } from './connection';
import { isReply } from './store-error';
import { type CommandOptions, type GroupResult, areCounts, asking, countByCommands, stepResult } from './commands';
import { COUNT, GUARDED_COUNT, type Script } from './scripts';

/**
 * Most keys of one script call, so that no call blocks the store for long: as measured, 256 keys take Redis about half a
 * millisecond, and larger calls cost the same per key.
 */
const KEYS_PER_CALL = 256;

export interface CountOptions extends CommandOptions {
  readonly known: KnownExpiries;
}

/**
 * Counts groups of operations, each in one script call and therefore atomically, all in one write; with plain commands where the
 * server rejects scripts. Resolves with the results of each group, or the error of its call, which may be the loss of the connection.
 *
 * Rejects when a reply does not match its call: then none on this connection does.
 */
export async function count(
  connection: Connection,
  groups: readonly (readonly CounterOperation[])[],
  options: CountOptions,
): Promise<readonly GroupResult[]> {
  if (connection.scriptRejection !== undefined) return countByCommands(connection, groups, options);
  const results = await callScripts('evalsha', groups);
  if (!results.some(isReply)) return results;
  // Neither NOSCRIPT nor a rejection has counted anything, so these groups, and no others, are sent again.
  await replace(isUnknownScript, (unknown) => callScripts('eval', unknown));
  connection.scriptRejection = results.find(isRejected);
  await replace(isRejected, (rejected) => countByCommands(connection, rejected, options));
  return results;

  /** `evalsha`: by their hash, which fails with NOSCRIPT when the server has lost the script; `eval`: by its text, which also loads it. */
  async function callScripts(command: Command, called: typeof groups): Promise<GroupResult[]> {
    const [first] = called;
    // The usual case, without what holding back and joining several calls costs.
    if (called.length === 1 && first !== undefined) return [await callScript(command, first)];
    return Promise.all(connection.inOneWrite(() => called.map((group) => callScript(command, group))));
  }
  async function callScript(command: Command, group: readonly CounterOperation[]): Promise<GroupResult> {
    const call = scriptCall(group, options);
    if (options.isAsking) asking(connection);
    let reply: unknown;
    try {
      reply = await connection.sendEncoded(command, encode(command, call));
    } catch (error) {
      return error as Error;
    }
    return resultsOf(reply, call, options);
  }
  async function replace(isUncounted: (result: GroupResult) => boolean, send: SendGroups): Promise<void> {
    const indices = results.flatMap((result, index) => (isUncounted(result) ? [index] : []));
    if (indices.length === 0) return;
    const sent = await send(indices.map((index) => groups[index] as readonly CounterOperation[]));
    for (const [position, index] of indices.entries()) results[index] = sent[position] as GroupResult;
  }
}

type SendGroups = (groups: readonly (readonly CounterOperation[])[]) => Promise<readonly GroupResult[]>;

/** Splits a window into groups of one script call each; the operations of a guard stay in one group. */
export function callsOf(batch: readonly CounterOperation[]): readonly (readonly CounterOperation[])[] {
  if (batch.length <= KEYS_PER_CALL) return [batch];
  const calls: CounterOperation[][] = [];
  let call: CounterOperation[] = [];
  for (let index = 0; index < batch.length;) {
    const length = groupLength(batch, index);
    if (call.length > 0 && call.length + length > KEYS_PER_CALL) {
      calls.push(call);
      call = [];
    }
    for (const end = index + length; index < end; index += 1) call.push(batch[index] as CounterOperation);
  }
  calls.push(call);
  return calls;
}

type Command = 'evalsha' | 'eval';

interface ScriptCall {
  readonly script: Script;
  /** KEYS */
  readonly steps: readonly Step[];
  /** ARGV[1] */
  readonly argument: string;
  /** The steps for which the script examines the expiry of their key. */
  readonly examined: readonly Step[];
}

function scriptCall(group: readonly CounterOperation[], { jitter, known }: CountOptions): ScriptCall {
  if (group.some(({ guard }) => guard !== undefined)) {
    return { script: GUARDED_COUNT, steps: group, argument: guardedCountArgument(group, jitter), examined: [] };
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
    json += `,${index + 1},"${step.hits}",${step.windowSeconds},${secondsLeft(step.windowSeconds)},${isKnown ? 1 : 0}`;
  }
  return { script: COUNT, steps: group, argument: `${json}]`, examined };
}

function guardedCountArgument(operations: readonly CounterOperation[], jitter: number): string {
  const steps = operations.map(({ hits, windowSeconds, limit }, index) => {
    const group = groupLength(operations, index);
    return `"${hits}",${windowSeconds + randomPart(jitter)},${secondsLeft(windowSeconds)},${limit},${group}`;
  });
  return `[${steps.join()}]`;
}

/** @throws Error when the reply does not match the call */
function resultsOf(reply: unknown, { steps, examined }: ScriptCall, { known }: CountOptions): GroupResult {
  if (!Array.isArray(reply) || reply.length !== steps.length)
    throw new Error('the reply does not match the script call');
  const list: readonly unknown[] = reply;
  // Allocates nothing in the common case, a list of integers.
  if (!areCounts(list)) return list.map(stepResult);
  known.add(examined);
  return list;
}

/** A script call in the Redis protocol: the command, the script, the number of keys, the keys, the argument. */
function encode(command: Command, { script, steps, argument }: ScriptCall): string {
  let call = `*${steps.length + 4}`;
  for (const text of [command, command === 'eval' ? script.text : script.sha, String(steps.length)]) {
    call += headerOf(text) + text;
  }
  for (const { key } of steps) {
    call += headerOf(key);
    call += key;
  }
  return `${call}${headerOf(argument)}${argument}\r\n`;
}

/** What is written before a text, with the end of the line before it. */
function headerOf(text: string): string {
  const bytes = Buffer.byteLength(text);
  return HEADERS[bytes] ?? header(bytes);
}

function header(bytes: number): string {
  return `\r\n$${bytes}\r\n`;
}

/** The headers of short texts, because building them takes as long as the rest of encoding a key. */
const HEADERS = Array.from({ length: 256 }, (_, bytes) => header(bytes));

function isUnknownScript(result: GroupResult): boolean {
  return isReply(result) && result.message.startsWith('NOSCRIPT');
}

/**
 * Whether the server rejects scripts altogether: the user lacks the permission, or the command does not exist. Not when the
 * script ran and a command or key in it was denied.
 */
function isRejected(result: GroupResult): result is Error {
  return isReply(result) && SCRIPT_REJECTION.test(result.message);
}

const SCRIPT_REJECTION = /^NOPERM .*'(?:eval|evalsha)' command|^ERR unknown command ['`](?:eval|evalsha)['`]/i;

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
