import { createGunzip } from 'node:zlib';
import { type CallFailure, Failure, MAX_MESSAGE_BYTES } from './responses';

/** What a call does with its compressed message. */
export interface InflationReceiver {
  /** Accounts for more bytes of the message. Returns false if there is no memory for them. */
  grows(bytes: number): boolean;
  inflated(message: Buffer): void;
  failed(failure: CallFailure): void;
}

/** Messages that are decompressed at the same time, on all connections: as many as Node has threads. */
const MAX_RUNNING = 4;

/** The messages of a connection. */
interface Queue {
  /** Messages that wait to be decompressed, the oldest first. */
  readonly waiting: Set<Inflation>;
  isRunning: boolean;
}

/**
 * Decompresses messages (gzip) in threads, one of a connection at a time, and the connections in turn. What a message
 * becomes is read in pieces, so that one that becomes too large is ended at the limit.
 */
export class Inflater {
  readonly #queues = new WeakMap<object, Queue>();
  /** Queues of which no message is being decompressed, in the order of their turns. */
  readonly #ready = new Set<Queue>();
  #running = 0;

  /** @param compressed is not changed until the receiver is called */
  inflate(connection: object, compressed: Buffer, receiver: InflationReceiver): Inflation {
    const queue = this.#queueOf(connection);
    const inflation = new Inflation(compressed, receiver, queue.waiting);
    queue.waiting.add(inflation);
    if (!queue.isRunning) this.#ready.add(queue);
    this.#startNext();
    return inflation;
  }

  #queueOf(connection: object): Queue {
    let queue = this.#queues.get(connection);
    if (queue === undefined) this.#queues.set(connection, (queue = { waiting: new Set(), isRunning: false }));
    return queue;
  }

  #startNext(): void {
    for (const queue of this.#ready) {
      if (this.#running >= MAX_RUNNING) return;
      this.#ready.delete(queue);
      const [next] = queue.waiting as ReadonlySet<Inflation | undefined>;
      if (next === undefined) continue;
      queue.waiting.delete(next);
      queue.isRunning = true;
      this.#running += 1;
      next.start(() => {
        queue.isRunning = false;
        this.#running -= 1;
        this.#ready.add(queue);
        this.#startNext();
      });
    }
  }
}

/** A message that is decompressed, or waits for that. */
export class Inflation {
  readonly #compressed: Buffer;
  readonly #waiting: Set<Inflation>;
  #receiver: InflationReceiver | undefined;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(compressed: Buffer, receiver: InflationReceiver, waiting: Set<Inflation>) {
    this.#compressed = compressed;
    this.#receiver = receiver;
    this.#waiting = waiting;
  }

  /** The receiver is not called any more. */
  cancel(): void {
    this.#receiver = undefined;
    this.#waiting.delete(this);
  }

  /** @param ended called when it does not use a thread any more */
  start(ended: () => void): void {
    const gunzip = createGunzip();
    gunzip.on('data', (piece: Buffer) => {
      this.#bytes += piece.length;
      this.#pieces.push(piece);
      if (this.#bytes > MAX_MESSAGE_BYTES) this.#fail(Failure.TOO_LARGE);
      else if (this.#receiver?.grows(piece.length) === false) this.#fail(Failure.TOO_MUCH_MEMORY);
      if (this.#receiver === undefined) gunzip.destroy();
    });
    gunzip.on('end', () => this.#receiver?.inflated(Buffer.concat(this.#pieces, this.#bytes)));
    gunzip.on('error', () => this.#fail(Failure.NOT_GZIP));
    gunzip.on('close', ended);
    gunzip.end(this.#compressed);
  }

  #fail(failure: CallFailure): void {
    const receiver = this.#receiver;
    this.cancel();
    receiver?.failed(failure);
  }
}
