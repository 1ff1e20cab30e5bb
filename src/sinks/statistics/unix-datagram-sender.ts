import { setTimeout as wait } from 'node:timers/promises';
import { LARGEST_AGENT_PACKET } from './largest-agent-packet';
import type { LineSender } from './line-sender';
import { packets } from './packets';
import { TakenInPart } from './taken-in-part';
import { sendUnixDatagram } from './unix-datagram';

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
  readonly destination: string;
  #isOpen = false;

  constructor(private readonly options: UnixDatagramSenderOptions) {
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
    const { path, patience = PATIENCE } = this.options;
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
