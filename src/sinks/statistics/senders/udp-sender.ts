import { type Socket, createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { setTimeout as wait } from 'node:timers/promises';
import type { LineSender } from './line-sender';
import { packets } from './framing';

export interface UdpSenderOptions {
  readonly host: string;
  readonly port: number;
  /** Milliseconds that a refusal may take to come back. */
  readonly refusalTime?: number;
}

/** What fits into an Ethernet frame behind the headers of IPv6 and a tunnel; what statsd daemons are told to expect. */
const LARGEST_DATAGRAM = 1432;
const REFUSAL_TIME = 50;

/**
 * Lines over UDP, as many whole ones in a datagram as there is room for. A port at which nobody listens is refused by its
 * machine, which is all that UDP tells; so after the first datagrams since {@link open} there is a pause for a refusal.
 */
export class UdpSender implements LineSender {
  readonly #options: UdpSenderOptions;
  readonly destination: string;
  #socket: Socket | undefined;
  #refusal: Error | undefined;
  #isTried = false;

  constructor(options: UdpSenderOptions) {
    this.#options = options;
    this.destination = `udp://${options.host}:${options.port}`;
  }

  async open(): Promise<void> {
    this.#isTried = false;
    if (this.#socket !== undefined && this.#refusal === undefined) return;
    this.close();
    this.#refusal = undefined;
    const { host, port } = this.#options;
    const { address, family } = await lookup(host);
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    socket.unref();
    this.#socket = socket;
    await new Promise<void>((resolve, reject) => {
      socket.on('error', (error) => {
        this.#refusal = error;
        reject(error);
      });
      // The callback is the listener of one event; what fails before it comes as an error.
      socket.connect(port, address, resolve);
    });
  }

  async send(lines: readonly string[]): Promise<void> {
    for (const { bytes } of packets(lines, LARGEST_DATAGRAM)) await this.#send(bytes);
    if (!this.#isTried) {
      this.#isTried = true;
      await wait(this.#options.refusalTime ?? REFUSAL_TIME, undefined, { ref: false });
    }
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  #send(datagram: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#socket === undefined) {
        reject(new Error('the socket is closed'));
        return;
      }
      this.#socket.send(datagram, (error) => {
        if (error === null) {
          resolve();
          return;
        }
        this.#refusal = error;
        reject(error);
      });
    });
  }
}
