import { endedLines, lengthPrefixed } from './framing';
import { type NetConnectOpts, type Socket, connect } from 'node:net';
import type { LineSender } from './line-sender';

export interface ConnectionSenderOptions {
  readonly destination: string;
  readonly address: NetConnectOpts;
  /** How lines stand on the connection; what the lines of one call come to is written at once. */
  readonly write: (lines: readonly string[]) => string | Uint8Array;
  /** Milliseconds for the connection to be made, and for lines to be taken; more means that the receiver is away. */
  readonly patience?: number | undefined;
}

const PATIENCE = 3_000;

/**
 * Lines over a connection. It is kept while it lasts, and made anew when there is something to send: no timer runs between.
 * At most the lines of one call wait in this process, so a receiver that does not read costs no memory.
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
    // A daemon that talks back must not keep the connection's end from being seen.
    socket.resume();
    // A connection may be reset while nothing is sent, and then nobody else listens. Its close follows.
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
    });
    this.#socket = socket;
    await this.#within(socket, (done) => socket.once('connect', () => done()));
  }

  async send(lines: readonly string[]): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined) throw new Error('the connection was lost');
    await this.#within(socket, (done) => socket.write(this.#options.write(lines), (error) => done(error ?? undefined)));
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    // What the system has taken is still delivered; there is nothing else.
    socket?.destroySoon();
  }

  /** Lets go of the connection when something goes wrong with it, or takes too long. */
  #within(socket: Socket, begin: (done: (error?: Error) => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const { patience = PATIENCE } = this.#options;
      const late = setTimeout(() => done(new Error(`nothing was taken within ${patience} ms`)), patience);
      const done = (error?: Error): void => {
        clearTimeout(late);
        socket.off('error', done).off('close', ended);
        if (error === undefined) {
          resolve();
          return;
        }
        if (this.#socket === socket) this.#socket = undefined;
        socket.destroy();
        reject(error);
      };
      function ended(): void {
        done(new Error('the connection was closed'));
      }
      socket.on('error', done).once('close', ended);
      begin(done);
    });
  }
}

export interface TcpSenderOptions {
  readonly host: string;
  readonly port: number;
  /** As {@link ConnectionSender} has it. */
  readonly patience?: number;
}

/** Lines over TCP. */
export class TcpSender extends ConnectionSender {
  constructor({ host, port, patience }: TcpSenderOptions) {
    super({
      destination: `tcp://${host}:${port}`,
      address: { host, port, noDelay: true, keepAlive: true },
      write: endedLines,
      patience,
    });
  }
}

export interface UnixStreamSenderOptions {
  /** Of the socket that the daemon listens on. */
  readonly path: string;
  /** Lines that each end in a newline, or packets as the Datadog agent takes them. */
  readonly framing: 'lines' | 'packets';
  /** As {@link ConnectionSender} has it. */
  readonly patience?: number;
}

/** Lines over a stream socket of this machine. */
export class UnixStreamSender extends ConnectionSender {
  constructor({ path, framing, patience }: UnixStreamSenderOptions) {
    super({
      destination: `unixstream://${path}`,
      address: { path },
      write: framing === 'packets' ? lengthPrefixed : endedLines,
      patience,
    });
  }
}
