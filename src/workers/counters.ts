import { BehaviorSubject, NEVER, Observable, type Subscriber, distinctUntilChanged, firstValueFrom } from 'rxjs';
import type { AlgorithmLimit, LimitState } from '../limiter/algorithm';
import { algorithmOf } from '../limiter/applied-limit';
import { windowStart } from '../limiter/cache-key';
import type { Count, CounterOperation, Guard } from '../limiter/counter-operation';
import { DecisionError } from '../limiter/decision-error';
import type { CounterAdministration, CounterKey, StoredCounter } from '../streams/ports/counter-administration';
import type { CounterLane, Counters, LanePipeline } from '../streams/ports/counters';
import { tableKey } from '../text/table-key';
import type { Channel } from './channel';

/**
 * How many windows of a worker may be on their way to the primary. While one is, the calls of the next gather, so that each message
 * carries more of them; a second one keeps the worker busy meanwhile.
 */
const WINDOWS_IN_FLIGHT = 2;
/** A message with more has the operations of one common guard only. */
const OPERATIONS_PER_MESSAGE = 500;
/**
 * Milliseconds without an answer after which calls fail. Longer than the primary stands still by itself, for a heap snapshot for
 * example: callers that cannot wait have deadlines of their own.
 */
export const ANSWER_LIMIT = 5_000;
/** It is measured by this many timers, so that after a standstill of this process, answers that arrived meanwhile are read first. */
const CHECKS = 10;

/**
 * Operations: the key of each, and its four numbers unless they are those of the operation before. The last of them is the size of a guard
 * with its first operation, negative when the guard is over in any case, 0 otherwise. Then the limit of one with an algorithm, with its calls.
 */
type BatchMessage = (string | number | AlgorithmMessage)[];

type AlgorithmMessage = AlgorithmLimit & Pick<CounterOperation, 'calls'>;

/** A batch whose counts have not arrived. */
interface SentBatch {
  /** Those that have arrived. */
  counts: readonly Count[] | undefined;
  /** How many there will be. */
  readonly size: number;
  readonly subscriber: Subscriber<readonly Count[]>;
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
    channel.receive('counters', (counts: readonly (number | LimitState)[]) => this.#arrived(counts));
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.closed$.subscribe(() => this.#closed());
  }

  /** The one lane of this store. */
  laneOf(): CounterLane {
    return this;
  }

  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]> {
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

  async readCounter(counter: CounterKey): Promise<StoredCounter> {
    const count = await this.#hit(counter, 0);
    const now = Date.now() / 1000;
    const end = windowStart(Math.floor(now), counter.windowSeconds) + counter.windowSeconds;
    return { count, timeToLive: count === 0 ? null : Math.ceil(end - now) };
  }

  /** By the difference, so that hits of other workers that are counted meanwhile are kept. */
  async setCounter(counter: CounterKey, count: number): Promise<StoredCounter> {
    const before = await this.readCounter(counter);
    await this.#hit(counter, count - before.count);
    return before;
  }

  /** The key stays, with the count 0, until its window ends. */
  clearCounter(counter: CounterKey): Promise<StoredCounter> {
    return this.setCounter(counter, 0);
  }

  async close(): Promise<void> {
    if (this.#sent.length > 0 && this.#isConnected$.value)
      await new Promise<void>((resolve) => (this.#onIdle = resolve));
    clearInterval(this.#timer);
  }

  /** Adds hits, or subtracts them; returns the count after. */
  async #hit({ key, windowSeconds }: CounterKey, hits: number): Promise<number> {
    const [count] = await firstValueFrom(this.apply([{ key, windowSeconds, hits, guard: undefined, limit: 0 }]));
    if (count instanceof DecisionError) throw count;
    return Number(count);
  }

  #arrived(counts: readonly (number | LimitState)[]): void {
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
export type ApplyNow = (batch: readonly CounterOperation[]) => readonly (number | LimitState)[];

/**
 * Applies the batches of a worker to the counters of this process, until the channel closes. A batch is applied when it arrives,
 * whether or not its worker still lives when it is answered.
 */
export function serveCounters(channel: Channel, applyNow: ApplyNow): void {
  channel.receive('counters', (message: BatchMessage) => channel.send('counters', applyNow(operationsIn(message))));
}

/** The messages of a batch, in order. Operations with a common guard are in the same one. */
function* messagesOf(batch: readonly CounterOperation[]): Generator<BatchMessage, void, void> {
  let message: BatchMessage = [];
  let count = 0;
  let [last, lastSize]: [CounterOperation | undefined, number] = [undefined, 0];
  for (const operation of batch) {
    const { key, hits, limit, windowSeconds, guard, algorithm, calls } = operation;
    const isFirst = guard === undefined || guard !== last?.guard;
    if (isFirst && count >= OPERATIONS_PER_MESSAGE) {
      yield message;
      [message, count, last] = [[], 0, undefined];
    }
    const size: number = isFirst && guard !== undefined ? guard.operations * (guard.isOver ? -1 : 1) : 0;
    message.push(tableKey(key));
    if (size !== lastSize || last === undefined || !isAlike(operation, last)) {
      message.push(hits, limit, windowSeconds, size);
    }
    if (algorithm !== undefined) {
      const { name, requestsPerUnit, burst } = algorithm;
      message.push({ name, requestsPerUnit, windowSeconds: algorithm.windowSeconds, burst, calls });
    }
    count += 1;
    [last, lastSize] = [operation, size];
  }
  yield message;
}

function isAlike(one: CounterOperation, other: CounterOperation): boolean {
  return one.hits === other.hits && one.limit === other.limit && one.windowSeconds === other.windowSeconds;
}

function operationsIn(message: BatchMessage): readonly CounterOperation[] {
  const operations: CounterOperation[] = [];
  let [hits, limit, windowSeconds, size] = [0, 0, 0, 0];
  let guard: Guard | undefined;
  let guarded = 0;
  for (let at = 0; at < message.length;) {
    const key = message[at] as string;
    at += 1;
    if (typeof message[at] === 'number') {
      [hits, limit, windowSeconds, size] = message.slice(at, at + 4) as [number, number, number, number];
      at += 4;
    }
    if (size !== 0) {
      guarded = Math.abs(size);
      guard = { operations: guarded, isOver: size < 0 };
    }
    const decided = typeof message[at] === 'object' ? (message[at] as AlgorithmMessage) : undefined;
    if (decided !== undefined) at += 1;
    const algorithm = decided && algorithmOf(decided);
    const calls = decided?.calls;
    operations.push({ key, hits, limit, windowSeconds, algorithm, calls, guard: guarded > 0 ? guard : undefined });
    guarded -= 1;
  }
  return operations;
}

export function primaryEnded(): DecisionError {
  return new DecisionError('store_failed', 'the process that has the counters has ended');
}

export function primarySilent(): DecisionError {
  return new DecisionError('store_timeout', 'the process that has the counters does not answer');
}
