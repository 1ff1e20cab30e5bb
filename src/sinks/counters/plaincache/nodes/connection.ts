import { type Socket, connect as connectPlain } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { type Server, connectOptions } from '../../server-address';
import type { ReplyReader } from '../protocol/reply-reader';

/** An exchange without a complete reply: the server may or may not have executed its commands. */
export class ConnectionFailure extends Error {
  override readonly name = 'ConnectionFailure';
  /** Whether the time was over; otherwise the connection could not be made or was closed. */
  readonly isTimeout: boolean;
  /** Whether a part of the reply had arrived. */
  readonly hasAnswered: boolean;

  constructor(message: string, { isTimeout, hasAnswered }: Pick<ConnectionFailure, 'isTimeout' | 'hasAnswered'>) {
    super(message);
    this.isTimeout = isTimeout;
    this.hasAnswered = hasAnswered;
  }
}

interface Exchange {
  readonly finish: (chunk: Buffer) => boolean;
  readonly fail: (error: Error) => void;
  hasAnswered: boolean;
}

/** A connection to a memcached server. It carries one exchange at a time. */
export class Connection {
  readonly #socket: Socket;
  #exchange: Exchange | undefined;
  #isUsable = true;

  /** Begins to connect; the first exchange waits for it. @param tls undefined: without TLS */
  constructor(server: Server, tls: ConnectionOptions | undefined) {
    const at = connectOptions(server);
    this.#socket = tls === undefined ? connectPlain(at) : connectTls({ ...at, ...tls });
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk: Buffer) => this.#received(chunk));
    this.#socket.on('error', (error) => this.#failed(error.message));
    this.#socket.on('close', () => this.#failed('the server closed the connection'));
    this.#socket.on('end', () => this.#failed('the server closed the connection'));
  }

  /** Whether it can carry another exchange. */
  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** Lets the process end while the connection is idle. */
  setIdle(isIdle: boolean): void {
    if (isIdle) this.#socket.unref();
    else this.#socket.ref();
  }

  /**
   * Writes a request and reads its reply. Anything but exactly the expected reply ends the connection, because later replies could
   * not be assigned any more.
   *
   * @param timeout milliseconds for each part of the reply, the time to connect included
   * @throws {ConnectionFailure}, or what the reader throws
   */
  exchange<T>(request: string, reader: ReplyReader<T>, timeout: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const { partsRead } = reader;
        // After a long turn of the event loop, a reply that has arrived in time is still to be read. A part of it restarts the timer.
        setImmediate(() => {
          if (this.#exchange !== exchange || reader.partsRead !== partsRead) return;
          this.#failed(`the server did not answer within ${timeout} ms`, true);
        });
      }, timeout);
      const exchange: Exchange = {
        hasAnswered: false,
        finish: (chunk) => {
          const { partsRead } = reader;
          const result = reader.read(chunk);
          if (result === undefined) {
            if (reader.partsRead !== partsRead) timer.refresh();
            return false;
          }
          clearTimeout(timer);
          resolve(result);
          return true;
        },
        fail: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      this.#exchange = exchange;
      this.#socket.write(request, 'latin1');
    });
  }

  close(): void {
    this.#failed('the connection is closed');
  }

  #received(chunk: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return this.#failed('the server sent bytes that no command asked for');
    exchange.hasAnswered = true;
    try {
      if (exchange.finish(chunk)) this.#exchange = undefined;
    } catch (error) {
      this.#exchange = undefined;
      this.#failed('the reply was not as expected');
      exchange.fail(error as Error);
    }
  }

  #failed(message: string, isTimeout = false): void {
    if (!this.#isUsable) return;
    this.#isUsable = false;
    this.#socket.destroy();
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.fail(new ConnectionFailure(message, { isTimeout, hasAnswered: exchange.hasAnswered }));
  }
}
