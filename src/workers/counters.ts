import { BehaviorSubject, NEVER, Observable, type Subscriber, distinctUntilChanged, firstValueFrom } from 'rxjs';
import type { AlgorithmLimit } from '../counting/algorithms/algorithm';
import { algorithmOf } from '../counting/limit';
import { windowStart } from '../counting/windows';
import {
  type Counted,
  type CountedLimit,
  type Group,
  Operation,
  type Result,
  type Stored,
  groupLength,
} from '../counting/operation';
import { DecisionError } from '../counting/decision-error';
import type { CounterAdministration, StoredCounter } from '../streams/ports/counter-administration';
import type { CounterLane, Counters, LanePipeline } from '../streams/ports/counters';
import { tableKey } from '../text/table-key';
import type { Channel } from './channel';

/**
 * How many windows of a worker may be on their way to the primary. While one is, the calls of the next gather, so that each message
 * carries more of them; a second one keeps the worker busy meanwhile.
 */
const WINDOWS_IN_FLIGHT = 2;
/** A message with more has the operations of one common group only. */
const OPERATIONS_PER_MESSAGE = 500;
/**
 * Milliseconds without an answer after which calls fail. Longer than the primary stands still by itself, for a heap snapshot for
 * example: callers that cannot wait have deadlines of their own.
 */
export const ANSWER_LIMIT = 5_000;
/** It is measured by this many timers, so that after a standstill of this process, answers that arrived meanwhile are read first. */
const CHECKS = 10;

/**
 * Operations: the key of each, and its four numbers unless they are those of the operation before. The last of them is the size of a group
 * with its first operation, negative when the group is over in any case, 0 otherwise. Then the limit of one with an algorithm, with its calls.
 */
type BatchMessage = (string | number | AlgorithmMessage)[];

type AlgorithmMessage = AlgorithmLimit & Pick<Operation, 'calls'>;

/** A batch whose counts have not arrived. */
interface SentBatch {
  /** Those that have arrived. */
  counts: readonly Result[] | undefined;
  /** How many there will be. */
  readonly size: number;
  readonly subscriber: Subscriber<readonly Result[]>;
}

/**
 * The counters in the memory of the primary, seen from a worker. Batches of all workers are applied one after the other, in the order in
 * which they arrive, so that counts are exact. The worker's clock decides which window a call belongs to, as with every store; that of
 * the primary only when keys are removed.
 */
export class RemoteCounters implements Counters, CounterLane, CounterAdministration {
  readonly connected$: Observable<boolean>;
  readonly pipeline: LanePipeline;
  readonly instance = { lanesAtOnce: 1 };
  readonly retired$ = NEVER;
  readonly #channel: Channel;
  /** In the order in which they were sent, which is that of their counts. */
  readonly #sent: SentBatch[] = [];
  readonly #isConnected$ = new BehaviorSubject(true);
  readonly #timer: NodeJS.Timeout;
  #checksWithoutAnswer = 0;
  #isClosed = false;
  #onIdle: () => void = () => undefined;

  /** @param windowSpan how long a pipeline window gathers, in milliseconds */
  constructor(channel: Channel, windowSpan: number) {
    this.connected$ = this.#isConnected$.pipe(distinctUntilChanged());
    this.pipeline = { span: windowSpan, windowsInFlight: WINDOWS_IN_FLIGHT, whenFull: undefined };
    this.#channel = channel;
    this.#timer = setInterval(() => this.#check(), ANSWER_LIMIT / CHECKS);
    channel.receive('counters', (counts: readonly Stored[]) => this.#arrived(counts));
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.closed$.subscribe(() => this.#closed());
  }

  /** The one lane of this store. */
  laneOf(): CounterLane {
    return this;
  }

  apply(batch: readonly Operation[]): Observable<readonly Result[]> {
    return new Observable((subscriber) => {
      if (this.#isClosed) subscriber.error(primaryEnded());
      else if (!this.#isConnected$.value) subscriber.error(primarySilent());
      else if (batch.length === 0) {
        subscriber.next([]);
        subscriber.complete();
      } else {
        this.#sent.push({ counts: undefined, size: batch.length, subscriber });
        for (const message of messagesOf(batch)) this.#channel.send('counters', message);
      }
    });
  }

  async readCounter(counter: Counted): Promise<StoredCounter> {
    const count = await this.#hit(counter, 0);
    const now = Date.now() / 1000;
    const end = windowStart(Math.floor(now), counter.limit.windowSeconds) + counter.limit.windowSeconds;
    return { count, timeToLive: count === 0 ? null : Math.ceil(end - now) };
  }

  /** By the difference, so that hits of other workers that are counted meanwhile are kept. */
  async setCounter(counter: Counted, count: number): Promise<StoredCounter> {
    const before = await this.readCounter(counter);
    await this.#hit(counter, count - before.count);
    return before;
  }

  /** The key stays, with the count 0, until its window ends. */
  clearCounter(counter: Counted): Promise<StoredCounter> {
    return this.setCounter(counter, 0);
  }

  async close(): Promise<void> {
    if (this.#sent.length > 0 && this.#isConnected$.value)
      await new Promise<void>((resolve) => (this.#onIdle = resolve));
    clearInterval(this.#timer);
  }

  /** Adds hits, or subtracts them; returns the count after. */
  async #hit({ key, limit }: Counted, hits: number): Promise<number> {
    const [count] = await firstValueFrom(this.apply([new Operation(limit, key, hits)]));
    if (count instanceof DecisionError) throw count;
    return Number(count);
  }

  #arrived(counts: readonly Stored[]): void {
    this.#checksWithoutAnswer = 0;
    const batch = this.#sent[0] as SentBatch;
    batch.counts = batch.counts === undefined ? counts : [...batch.counts, ...counts];
    if (batch.counts.length < batch.size) return;
    this.#sent.shift();
    batch.subscriber.next(batch.counts);
    batch.subscriber.complete();
    if (!this.#isConnected$.value) this.#isConnected$.next(true);
    if (this.#sent.length === 0) this.#onIdle();
  }

  #check(): void {
    this.#checksWithoutAnswer = this.#sent.length === 0 ? 0 : this.#checksWithoutAnswer + 1;
    if (this.#checksWithoutAnswer !== CHECKS) return;
    this.#isConnected$.next(false);
    // They remain in the list: they have been sent, and may be answered later.
    for (const { subscriber } of this.#sent) subscriber.error(primarySilent());
    this.#onIdle();
  }

  #closed(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const { subscriber } of this.#sent.splice(0)) subscriber.error(primaryEnded());
    this.#onIdle();
  }
}

/** Applies a batch as {@link CounterLane.apply} does, before it returns. */
export type ApplyNow = (batch: readonly Operation[]) => readonly Stored[];

/**
 * Applies the batches of a worker to the counters of this process, until the channel closes. A batch is applied when it arrives,
 * whether or not its worker still lives when it is answered.
 */
export function serveCounters(channel: Channel, applyNow: ApplyNow): void {
  channel.receive('counters', (message: BatchMessage) => channel.send('counters', applyNow(operationsIn(message))));
}

/** The messages of a batch, in order. Operations with a common group are in the same one. */
function* messagesOf(batch: readonly Operation[]): Generator<BatchMessage, void, void> {
  let message: BatchMessage = [];
  let count = 0;
  let [last, lastSize]: [Operation | undefined, number] = [undefined, 0];
  for (const [index, operation] of batch.entries()) {
    const { key, hits, group, calls } = operation;
    const { requestsPerUnit, windowSeconds, algorithm } = operation.limit;
    const isFirst = group === undefined || group !== last?.group;
    if (isFirst && count >= OPERATIONS_PER_MESSAGE) {
      yield message;
      [message, count, last] = [[], 0, undefined];
    }
    const size: number = isFirst && group !== undefined ? groupLength(batch, index) * (group.isOver ? -1 : 1) : 0;
    message.push(tableKey(key));
    if (size !== lastSize || last === undefined || !isAlike(operation, last)) {
      message.push(hits, requestsPerUnit, windowSeconds, size);
    }
    if (algorithm !== undefined) {
      const { name, burst } = algorithm;
      message.push({ name, requestsPerUnit, windowSeconds: algorithm.windowSeconds, burst, calls });
    }
    count += 1;
    [last, lastSize] = [operation, size];
  }
  yield message;
}

function isAlike(one: Operation, other: Operation): boolean {
  if (one.hits !== other.hits) return false;
  const [{ requestsPerUnit, windowSeconds }, limit] = [one.limit, other.limit];
  return requestsPerUnit === limit.requestsPerUnit && windowSeconds === limit.windowSeconds;
}

function operationsIn(message: BatchMessage): readonly Operation[] {
  const operations: Operation[] = [];
  let [hits, size] = [0, 0];
  let limit: CountedLimit = { requestsPerUnit: 0, windowSeconds: 0 };
  let group: Group | undefined;
  let grouped = 0;
  for (let at = 0; at < message.length;) {
    const key = message[at] as string;
    at += 1;
    if (typeof message[at] === 'number') {
      const [requestsPerUnit, windowSeconds] = [message[at + 1] as number, message[at + 2] as number];
      [hits, limit, size] = [message[at] as number, { requestsPerUnit, windowSeconds }, message[at + 3] as number];
      at += 4;
    }
    const decided = typeof message[at] === 'object' ? (message[at] as AlgorithmMessage) : undefined;
    if (decided !== undefined) at += 1;
    if (size !== 0) {
      grouped = Math.abs(size);
      const mode = decided === undefined ? 'stop_when_over' : 'all_or_nothing';
      group = { mode, isOver: size < 0 };
    }
    const operation = new Operation(
      decided === undefined ? limit : { ...limit, algorithm: algorithmOf(decided) },
      key,
      hits,
    );
    operation.calls = decided?.calls;
    operation.group = grouped > 0 ? group : undefined;
    grouped -= 1;
    operations.push(operation);
  }
  return operations;
}

export function primaryEnded(): DecisionError {
  return new DecisionError('store_failed', 'the process that has the counters has ended');
}

export function primarySilent(): DecisionError {
  return new DecisionError('store_timeout', 'the process that has the counters does not answer');
}
