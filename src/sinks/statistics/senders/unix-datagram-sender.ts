import { DgramSocket } from 'node-unix-socket';
import { setTimeout as wait } from 'node:timers/promises';
import { LARGEST_AGENT_PACKET, packets } from './framing';
import { type LineSender, TakenInPart } from './line-sender';

export interface UnixDatagramSenderOptions {
  /** Of the socket that the daemon reads from. */
  readonly path: string;
  /** Milliseconds that a daemon may take to make room for a datagram; more means that it is away. */
  readonly patience?: number;
}

const PATIENCE = 3_000;
/** Milliseconds between two tries: some systems keep ten datagrams for a reader, which it reads in less than one. */
const SHORTEST_PAUSE = 1;
const LONGEST_PAUSE = 50;

/**
 * Lines to a datagram socket of this machine, as many whole ones in a datagram as there is room for. The system tells at
 * once what was not taken, so nothing waits in this process but the lines of one call, and a daemon that is started anew is
 * found at its path by the next datagram.
 */
export class UnixDatagramSender implements LineSender {
  readonly #options: UnixDatagramSenderOptions;
  readonly destination: string;
  #isOpen = false;

  constructor(options: UnixDatagramSenderOptions) {
    this.#options = options;
    this.destination = `unix://${options.path}`;
  }

  async open(): Promise<void> {
    this.#isOpen = true;
  }

  async send(lines: readonly string[]): Promise<void> {
    let taken = 0;
    for (const packet of packets(lines, LARGEST_AGENT_PACKET)) {
      try {
        await this.#send(packet.bytes);
      } catch (error) {
        throw taken > 0 && error instanceof Error ? new TakenInPart(taken, error) : error;
      }
      taken += packet.lines;
    }
  }

  close(): void {
    this.#isOpen = false;
  }

  async #send(datagram: Buffer): Promise<void> {
    const { path, patience = PATIENCE } = this.#options;
    const latest = performance.now() + patience;
    let pause = SHORTEST_PAUSE;
    while (!sendUnixDatagram(path, datagram)) {
      if (performance.now() >= latest) throw new Error(`nothing was taken within ${patience} ms`);
      await wait(pause);
      if (!this.#isOpen) throw new Error('the sender was closed');
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}

/** What the library says where the path leads to a socket of the other kind. */
const WRONG_TYPE = 'Protocol wrong type for socket';

/**
 * Hands a datagram to the socket at a path, without waiting: whoever listens there now gets it, or nobody.
 *
 * The library keeps what the receiver has no room for, as much as one gives it, and asks the system without a pause whether
 * there is room now; and an open socket keeps the process from ending. So each datagram has a socket of its own, which is
 * closed right away (9 µs, beside 6 µs to send): what the system took is delivered all the same, and nothing else is left.
 *
 * @returns whether the system has taken it; false when the receiver has to read first
 * @throws when nobody listens at the path, or the datagram is longer than the system sends
 */
export function sendUnixDatagram(path: string, datagram: Buffer): boolean {
  const socket = new DgramSocket();
  try {
    let isTaken = false;
    let refusal: Error | undefined;
    // Called before sendTo returns, unless the datagram was kept.
    socket.sendTo(datagram, 0, datagram.length, path, (error?: Error) => {
      isTaken = error === undefined;
      refusal = error;
    });
    if (refusal !== undefined) throw explained(refusal);
    return isTaken;
  } finally {
    socket.close();
  }
}

function explained(refusal: Error): Error {
  if (refusal.message !== WRONG_TYPE) return refusal;
  return new Error('this is a stream socket, which is reached as unixstream://', { cause: refusal });
}
