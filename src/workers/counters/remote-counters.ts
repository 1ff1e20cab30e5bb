import {
  BehaviorSubject,
  NEVER,
  Observable,
  type SchedulerLike,
  type Subscriber,
  type Subscription,
  asyncScheduler,
  distinctUntilChanged,
  firstValueFrom,
  map,
} from 'rxjs';
import { windowStart } from '../../limiter/cache-key';
import type { Count, CounterOperation } from '../../limiter/counter-operation';
import { DecisionError } from '../../limiter/decision-error';
import type { CounterAdministration, CounterKey, StoredCounter } from '../../streams/ports/counter-administration';
import type { CounterLane, Counters, LanePipeline } from '../../streams/ports/counters';
import type { Channel } from '../channel/channel';
import { TOPICS } from '../channel/topics';
import { BatchWriter, readCounts } from './batch-frames';
import { silence } from './silence';

/**
 * How many windows of a worker may be on their way to the primary. While one is, the calls of the next gather, so that each frame
 * carries more of them; a second one keeps the worker busy meanwhile.
 */
const WINDOWS_IN_FLIGHT = 2;

/**
 * Milliseconds without an answer after which calls fail. Longer than the primary stands still by itself, for a heap snapshot for
 * example: callers that cannot wait have deadlines of their own.
 */
const ANSWER_LIMIT = 5_000;

export interface RemoteCountersOptions {
  readonly channel: Channel;
  /** How long a pipeline window gathers, in milliseconds. */
  readonly windowSpan: number;
  /** Measures {@link ANSWER_LIMIT}. */
  readonly scheduler?: SchedulerLike;
}

/** A batch whose counts have not arrived. */
interface SentBatch {
  readonly counts: Count[];
  /** How many counts are still missing. */
  missing: number;
  readonly subscriber: Subscriber<readonly Count[]>;
}

/**
 * The counters in the memory of the primary, seen from a worker. Batches of all workers are applied one after the other, in the order in which they
 * arrive, so that counts are exact. The worker's clock decides which window a call belongs to, as with every store; that of the primary
 * only when keys are removed.
 */
export class RemoteCounters implements Counters, CounterLane, CounterAdministration {
  readonly connected$: Observable<boolean>;
  readonly pipeline: LanePipeline;
  readonly instance = { lanesAtOnce: 1 };
  readonly retired$ = NEVER;
  readonly #channel: Channel;
  readonly #writer = new BatchWriter();
  /** In the order in which they were sent, which is that of their counts. */
  readonly #sent: SentBatch[] = [];
  readonly #isSilent$ = new BehaviorSubject(false);
  readonly #silence: Subscription;
  #isClosed = false;
  #onIdle: () => void = () => undefined;

  constructor({ channel, windowSpan, scheduler = asyncScheduler }: RemoteCountersOptions) {
    this.connected$ = this.#isSilent$.pipe(
      map((isSilent) => !isSilent),
      distinctUntilChanged(),
    );
    this.pipeline = { span: windowSpan, windowsInFlight: WINDOWS_IN_FLIGHT, whenFull: undefined };
    this.#channel = channel;
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.frames(TOPICS.counters).subscribe({
      next: (body) => this.#arrived(body),
      complete: () => this.#closed(),
    });
    this.#silence = silence(() => this.#sent[0], ANSWER_LIMIT, scheduler).subscribe((isSilent) => {
      this.#isSilent$.next(isSilent);
      if (isSilent) this.#silent();
    });
  }

  /** The one lane of this store. */
  laneOf(): CounterLane {
    return this;
  }

  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]> {
    return new Observable((subscriber) => {
      if (this.#isClosed) {
        subscriber.error(primaryEnded());
        return;
      }
      if (this.#isSilent$.value) {
        subscriber.error(primarySilent());
        return;
      }
      if (batch.length === 0) {
        subscriber.next([]);
        subscriber.complete();
        return;
      }
      this.#sent.push({ counts: [], missing: batch.length, subscriber });
      for (const body of this.#writer.write(batch)) this.#channel.send(TOPICS.counters, body);
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
    if (this.#sent.length > 0 && !this.#isSilent$.value) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    this.#silence.unsubscribe();
  }

  /** Adds hits, or subtracts them; returns the count after. */
  async #hit({ key, windowSeconds }: CounterKey, hits: number): Promise<number> {
    const [count] = await firstValueFrom(this.apply([{ key, windowSeconds, hits, guard: undefined, limit: 0 }]));
    if (typeof count !== 'number') throw count;
    return count;
  }

  #arrived(body: Buffer): void {
    const counts = readCounts(body);
    const batch = this.#sent[0] as SentBatch;
    for (let index = 0; index < counts.length; index += 1) batch.counts.push(counts[index] as number);
    batch.missing -= counts.length;
    if (batch.missing > 0) return;
    this.#sent.shift();
    batch.subscriber.next(batch.counts);
    batch.subscriber.complete();
    if (this.#sent.length === 0) this.#onIdle();
  }

  /** Fails what is in flight. It remains in the list: it has been sent, and may be answered later. */
  #silent(): void {
    for (const { subscriber } of this.#sent) subscriber.error(primarySilent());
    this.#onIdle();
  }

  #closed(): void {
    this.#isClosed = true;
    this.#silence.unsubscribe();
    for (const { subscriber } of this.#sent.splice(0)) subscriber.error(primaryEnded());
    this.#onIdle();
  }
}

function primaryEnded(): DecisionError {
  return new DecisionError('store_failed', 'the process that has the counters has ended');
}

function primarySilent(): DecisionError {
  return new DecisionError('store_timeout', 'the process that has the counters does not answer');
}
