import { type NetConnectOpts, type Socket, connect } from 'node:net';
import { startReplyTimer } from '../../../net/reply-timer';
import { lengthPrefixed, newlineTerminated } from './framing';
import type { LineSender } from './line-sender';

export interface ConnectionSenderOptions {
  readonly destination: string;
  readonly address: NetConnectOpts;
  /** Frames the lines of one call, which are written at once. */
  readonly frame: (lines: readonly string[]) => string | Uint8Array;
  /** Milliseconds for connecting, and for each write, before the receiver counts as unreachable; 3 s if undefined. */
  readonly timeout?: number | undefined;
}

const TIMEOUT = 3_000;

/**
 * Sends lines over a connection, which is kept open and re-established when there is something to send, without a timer. At most
 * the lines of one call are buffered in this process, so a receiver that does not read costs no memory.
 */
export class ConnectionSender implements LineSender {
  readonly #options: ConnectionSenderOptions;
  readonly destination: string;
  #socket: Socket | undefined;

  constructor(options: ConnectionSenderOptions) {
    this.#options = options;
    this.destination = options.destination;
  }

  async open(): Promise<void> {
    if (this.#socket !== undefined) return;
    const socket = connect(this.#options.address);
    socket.unref();
    // Unread data from the receiver would hide the end of the connection.
    socket.resume();
    // While nothing is being sent there is no other error listener. A reset is followed by 'close'.
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
    });
    this.#socket = socket;
    await this.#withTimeout(socket, (done) => socket.once('connect', () => done()));
  }

  async send(lines: readonly string[]): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined) throw new Error('the connection was lost');
    await this.#withTimeout(socket, (done) =>
      socket.write(this.#options.frame(lines), (error) => done(error ?? undefined)),
    );
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    // Data that the system has accepted is still delivered; nothing else is buffered.
    socket?.destroySoon();
  }

  /** Runs an operation on the connection; destroys the connection when the operation fails or times out. */
  #withTimeout(socket: Socket, begin: (done: (error?: Error) => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const { timeout = TIMEOUT } = this.#options;
      const stopTimer = startReplyTimer(timeout, () => done(new Error(`timed out after ${timeout} ms`)));
      const done = (error?: Error): void => {
        stopTimer();
        socket.off('error', done).off('close', onClose);
        if (error === undefined) {
          resolve();
          return;
        }
        if (this.#socket === socket) this.#socket = undefined;
        socket.destroy();
        reject(error);
      };
      function onClose(): void {
        done(new Error('the connection was closed'));
      }
      socket.on('error', done).once('close', onClose);
      begin(done);
    });
  }
}

export interface TcpSenderOptions {
  readonly host: string;
  readonly port: number;
  /** See {@link ConnectionSenderOptions.timeout}. */
  readonly timeout?: number;
}

/** Newline-terminated lines over TCP. */
export class TcpSender extends ConnectionSender {
  constructor({ host, port, timeout }: TcpSenderOptions) {
    super({
      destination: `tcp://${host}:${port}`,
      address: { host, port, noDelay: true, keepAlive: true },
      frame: newlineTerminated,
      timeout,
    });
  }
}

export interface UnixStreamSenderOptions {
  /** The path of the receiver's socket. */
  readonly path: string;
  /** Newline-terminated lines, or length-prefixed packets as the Datadog agent reads them. */
  readonly framing: 'lines' | 'packets';
  /** See {@link ConnectionSenderOptions.timeout}. */
  readonly timeout?: number;
}

/** Lines over a Unix stream socket. */
export class UnixStreamSender extends ConnectionSender {
  constructor({ path, framing, timeout }: UnixStreamSenderOptions) {
    super({
      destination: `unixstream://${path}`,
      address: { path },
      frame: framing === 'packets' ? lengthPrefixed : newlineTerminated,
      timeout,
    });
  }
}
