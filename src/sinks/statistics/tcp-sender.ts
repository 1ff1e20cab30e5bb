import { type Socket, connect } from 'node:net';
import type { LineSender } from './line-sender';

export interface TcpSenderOptions {
  readonly host: string;
  readonly port: number;
  /** Milliseconds for the connection to be made, and for lines to be taken; more means that the receiver is away. */
  readonly patience?: number;
}

const PATIENCE = 3_000;

/**
 * Lines over TCP. A connection is kept while it lasts, and made anew when there is something to send: no timer runs between.
 * At most the lines of one call wait in this process, so a receiver that does not read costs no memory.
 */
export class TcpSender implements LineSender {
  readonly destination: string;
  #socket: Socket | undefined;

  constructor(private readonly options: TcpSenderOptions) {
    this.destination = `tcp://${options.host}:${options.port}`;
  }

  async open(): Promise<void> {
    if (this.#socket !== undefined) return;
    const { host, port } = this.options;
    const socket = connect({ host, port, noDelay: true, keepAlive: true });
    socket.unref();
    // A daemon that talks back must not keep the connection's end from being seen.
    socket.resume();
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
    });
    this.#socket = socket;
    await this.#within(socket, (done) => socket.once('connect', () => done()));
  }

  async send(lines: readonly string[]): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined) throw new Error('the connection was lost');
    await this.#within(socket, (done) => socket.write(`${lines.join('\n')}\n`, (error) => done(error ?? undefined)));
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
      const { patience = PATIENCE } = this.options;
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
      const ended = (): void => done(new Error('the connection was closed'));
      socket.on('error', done).once('close', ended);
      begin(done);
    });
  }
}
