import { gunzip, gunzipSync } from 'node:zlib';
import { TokenBucket } from '../../http2/limits/token-bucket';
import { FREE_INFLATION, INFLATION, MAX_INFLATIONS, MAX_MESSAGE_BYTES, SYNC_INFLATION_BYTES } from '../limits';

export type InflationFailure = 'too large' | 'not gzip' | 'inflates too much';
/** Receives the decompressed message, or why it cannot be decompressed. */
export type InflationCallback = (result: Buffer | InflationFailure) => void;

/** A decompression that waits for a thread, or runs in one. */
export interface Inflation {
  /** Its result is not needed: the callback is not called, and the compressed message is no longer kept. */
  cancel(): void;
}

/** The decompressions of one connection. */
interface Inflations {
  /** Bytes by which messages may grow beyond what is free. */
  readonly budget: TokenBucket;
  /** Those that wait for a thread, the first one first. */
  readonly waiting: Set<Job>;
  isRunning: boolean;
}

interface Job extends Inflation {
  readonly compressed: Buffer;
  readonly done: InflationCallback;
  isCancelled: boolean;
}

/**
 * Decompresses messages, up to the maximum size of a message. Small messages are decompressed synchronously, large ones in
 * threads: one of each connection at a time, and the connections in turn. What the messages of a connection grow by is limited
 * over time, except for small and for usual growth: so messages made to grow fail, and no others of their connection.
 */
export class Inflater {
  readonly #now: () => number;
  #running = 0;
  readonly #connections = new WeakMap<object, Inflations>();
  /** The connections that have a job waiting and none running, in the order of their turns. */
  readonly #ready = new Set<Inflations>();

  /** `now`: milliseconds, monotonic. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Decompresses a small message. Returns undefined if it is not small: use {@link inflateLater}. */
  inflateNow(connection: object, compressed: Buffer): Buffer | InflationFailure | undefined {
    if (compressed.length > SYNC_INFLATION_BYTES) return undefined;
    const grant = new Grant(this.#of(connection).budget, this.#now(), compressed.length, SYNC_INFLATION_BYTES);
    try {
      const message = gunzipSync(compressed, { maxOutputLength: grant.bytes });
      grant.settle(message.length);
      return message;
    } catch (error) {
      const failure = grant.failureOf(error);
      if (failure !== 'too large') return failure;
      // Decompressed again in a thread, where it is charged.
      grant.settle(0);
      return undefined;
    }
  }

  /** Decompresses a message in a thread. Until `done` is called, `compressed` must not be modified. */
  inflateLater(connection: object, compressed: Buffer, done: InflationCallback): Inflation {
    const inflations = this.#of(connection);
    const job: Job = {
      compressed,
      done,
      isCancelled: false,
      cancel: () => {
        job.isCancelled = true;
        inflations.waiting.delete(job);
      },
    };
    inflations.waiting.add(job);
    if (!inflations.isRunning) this.#ready.add(inflations);
    this.#fillThreads();
    return job;
  }

  #of(connection: object): Inflations {
    let inflations = this.#connections.get(connection);
    if (inflations === undefined) {
      inflations = { budget: new TokenBucket(INFLATION), waiting: new Set(), isRunning: false };
      this.#connections.set(connection, inflations);
    }
    return inflations;
  }

  #fillThreads(): void {
    for (const inflations of this.#ready) {
      if (this.#running >= MAX_INFLATIONS) return;
      this.#ready.delete(inflations);
      for (const job of inflations.waiting) {
        this.#run(inflations, job);
        break;
      }
    }
  }

  #run(inflations: Inflations, job: Job): void {
    inflations.waiting.delete(job);
    inflations.isRunning = true;
    this.#running += 1;
    const grant = new Grant(inflations.budget, this.#now(), job.compressed.length, MAX_MESSAGE_BYTES);
    gunzip(job.compressed, { maxOutputLength: grant.bytes }, (error, message) => {
      inflations.isRunning = false;
      this.#running -= 1;
      if (error === null) grant.settle(message.length);
      if (inflations.waiting.size > 0) this.#ready.add(inflations);
      this.#fillThreads();
      if (!job.isCancelled) job.done(error === null ? message : grant.failureOf(error));
    });
  }
}

/**
 * How large one message may become: what is free for its size, and what the budget of its connection has left. Charged to the
 * budget at once; {@link settle} gives back what was not used. A message that fails gives nothing back.
 */
class Grant {
  readonly bytes: number;
  readonly #free: number;
  readonly #charged: number;
  readonly #max: number;
  readonly #budget: TokenBucket;

  constructor(budget: TokenBucket, now: number, compressedBytes: number, max: number) {
    this.#free = Math.min(max, Math.max(FREE_INFLATION.bytes, FREE_INFLATION.ratio * compressedBytes));
    this.#charged = budget.takeUpTo(now, max - this.#free);
    this.#max = max;
    this.#budget = budget;
    this.bytes = this.#free + this.#charged;
  }

  settle(used: number): void {
    this.#budget.giveBack(this.#charged - Math.max(0, used - this.#free));
  }

  failureOf(error: unknown): InflationFailure {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') return 'not gzip';
    return this.bytes < this.#max ? 'inflates too much' : 'too large';
  }
}
