import { type NetConnectOpts, type Socket, connect } from 'node:net';
import { asyncScheduler } from 'rxjs';
import { afterTime } from '../../streams/deadline';
import type { TextOutput } from '../text-outputs';

/**
 * Sends lines to a receiver. Methods that return a promise never throw; after a rejection, {@link open} reconnects, if
 * there is one.
 */
export interface LineSender {
  /** Where the lines go, for log lines. */
  readonly destination: string;
  /** The bytes of the longest line that it can send; no limit if undefined. */
  readonly maxLineBytes?: number;
  /** Connects unless connected; rejects within some seconds when the receiver cannot be reached. */
  open?(): Promise<void>;
  /**
   * Resolves when the lines have left this process; rejects when they have not within some seconds, although some of
   * them may have.
   */
  send(lines: readonly string[]): Promise<void>;
  /** Releases all resources immediately. */
  close(): void;
}

/**
 * Bytes that the Datadog agent reads per packet from a Unix socket of either kind, unless its `dogstatsd_buffer_size`
 * is set; it drops what exceeds them.
 */
export const MAX_AGENT_PACKET = 8192;

/** What fits into a datagram over IPv4: 64 KiB less its headers. */
export const MAX_DATAGRAM_LINE = 65_507;

/**
 * Packs as many whole lines into each packet, joined by newlines, as fit into `limit` bytes. A longer line is sent
 * alone, unsplit.
 */
export function* packets(lines: readonly string[], limit: number): Iterable<Buffer> {
  let gathered: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    const length = Buffer.byteLength(line);
    if (gathered.length > 0 && bytes + 1 + length > limit) {
      yield Buffer.from(gathered.join('\n'));
      gathered = [];
      bytes = 0;
    }
    bytes += gathered.length === 0 ? length : length + 1;
    gathered.push(line);
  }
  if (gathered.length > 0) yield Buffer.from(gathered.join('\n'));
}

function newlineTerminated(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/** The Datadog agent's framing on a stream: packets with their lengths before them, 32-bit little-endian numbers. */
function lengthPrefixed(lines: readonly string[]): Uint8Array {
  const parts: Buffer[] = [];
  for (const packet of packets(lines, MAX_AGENT_PACKET)) {
    const prefix = Buffer.allocUnsafe(4);
    prefix.writeUInt32LE(packet.length);
    parts.push(prefix, packet);
  }
  return Buffer.concat(parts);
}

export interface ConnectionSenderOptions {
  /** A TCP port, or the path of a Unix socket. */
  readonly to: { readonly host: string; readonly port: number } | { readonly path: string };
  /** Newline-terminated lines, the default, or length-prefixed packets as the Datadog agent reads them. */
  readonly framing?: 'lines' | 'packets';
  /** Milliseconds for connecting, and for each write, before the receiver counts as unreachable; 3 s if undefined. */
  readonly timeout?: number;
}

const TIMEOUT = 3_000;

/**
 * Sends lines over a connection, which is kept open and re-established when there is something to send, without a
 * timer. At most the lines of one call are buffered in this process, so a receiver that does not read costs no memory.
 */
export class ConnectionSender implements LineSender {
  readonly destination: string;
  readonly #address: NetConnectOpts;
  readonly #frame: (lines: readonly string[]) => string | Uint8Array;
  readonly #timeout: number;
  #socket: Socket | undefined;

  constructor({ to, framing = 'lines', timeout = TIMEOUT }: ConnectionSenderOptions) {
    this.destination = 'path' in to ? `unixstream://${to.path}` : `tcp://${to.host}:${to.port}`;
    this.#address = 'path' in to ? to : { ...to, noDelay: true, keepAlive: true };
    this.#frame = framing === 'packets' ? lengthPrefixed : newlineTerminated;
    this.#timeout = timeout;
  }

  async open(): Promise<void> {
    if (this.#socket !== undefined) return;
    const socket = connect(this.#address);
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
    await this.#withTimeout(socket, (done) => socket.write(this.#frame(lines), (error) => done(error ?? undefined)));
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
      const timeout = this.#timeout;
      const timer = afterTime(asyncScheduler, timeout, {
        onElapsed: () => done(new Error(`timed out after ${timeout} ms`)),
      });
      const done = (error?: Error): void => {
        timer.unsubscribe();
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

/**
 * Writes lines to an output that is always open, such as standard output. There is no timeout: a write cannot be
 * withdrawn, and repeating it would count the statistics twice. While the output is blocked, a flush waits, and the
 * statistics accumulate.
 */
export function streamSender(destination: string, output: TextOutput): LineSender {
  return {
    destination,
    send: (lines) =>
      new Promise((resolve, reject) => {
        output.write(newlineTerminated(lines), (error) => (error ? reject(error) : resolve()));
      }),
    // The output belongs to the process.
    close: () => undefined,
  };
}
