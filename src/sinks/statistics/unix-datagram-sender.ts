import { DgramSocket } from 'node-unix-socket';
import { setTimeout as wait } from 'node:timers/promises';
import { backoff } from '../../streams/backoff';
import { type LineSender, MAX_AGENT_PACKET, MAX_DATAGRAM_LINE, packets } from './senders';

/** Milliseconds that the receiver may take to make room for a datagram before it counts as unreachable. */
const TIMEOUT = 3_000;
/** Milliseconds between attempts. Some systems queue only ten datagrams, which a receiver reads in less than 1 ms. */
const PAUSE = backoff({ initial: 1, max: 50 });

/**
 * Sends lines to a Unix datagram socket, as many whole ones per datagram as fit. The system reports immediately what it
 * does not accept, so only the lines of one call are buffered in this process. The socket of a restarted receiver is
 * found by its path with the next datagram.
 */
export class UnixDatagramSender implements LineSender {
  readonly #path: string;
  readonly #timeout: number;
  readonly destination: string;
  /** Systems accept more, but not all of them much more. */
  readonly maxLineBytes = MAX_DATAGRAM_LINE;
  #isClosed = false;

  /** @param path that of the receiver's socket */
  constructor(path: string, timeout = TIMEOUT) {
    this.#path = path;
    this.#timeout = timeout;
    this.destination = `unix://${path}`;
  }

  async send(lines: readonly string[]): Promise<void> {
    for (const packet of packets(lines, MAX_AGENT_PACKET)) await this.#send(packet);
  }

  close(): void {
    this.#isClosed = true;
  }

  async #send(datagram: Buffer): Promise<void> {
    const deadline = performance.now() + this.#timeout;
    for (let attempt = 1; !sendUnixDatagram(this.#path, datagram); attempt += 1) {
      if (performance.now() >= deadline) throw new Error(`timed out after ${this.#timeout} ms`);
      await wait(PAUSE(attempt));
      if (this.#isClosed) throw new Error('the sender was closed');
    }
  }
}

/** The library's message when the path is that of a stream socket. */
const WRONG_TYPE = 'Protocol wrong type for socket';

/**
 * Sends a datagram to the socket at a path without waiting.
 *
 * The library buffers what the receiver has no room for, without a limit, and then polls the system without a pause;
 * and an open socket keeps the process alive. Therefore each datagram uses a socket of its own, which is closed
 * immediately (9 µs, compared with 6 µs for sending). A datagram that the system has accepted is still delivered;
 * nothing else remains buffered.
 *
 * @returns whether the system accepted the datagram; false when the receiver's queue is full
 * @throws when no process listens on the path, or the datagram exceeds the system's limit
 */
function sendUnixDatagram(path: string, datagram: Buffer): boolean {
  const socket = new DgramSocket();
  try {
    let isAccepted = false;
    let failure: Error | undefined;
    // The callback runs before sendTo returns, unless the library has buffered the datagram.
    socket.sendTo(datagram, 0, datagram.length, path, (error?: Error) => {
      isAccepted = error === undefined;
      failure = error;
    });
    if (failure !== undefined) throw explained(failure);
    return isAccepted;
  } finally {
    socket.close();
  }
}

function explained(error: Error): Error {
  if (error.message !== WRONG_TYPE) return error;
  return new Error('this is a stream socket: use unixstream://', { cause: error });
}
