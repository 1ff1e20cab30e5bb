import { type Socket, createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { packets } from './framing';
import type { LineSender } from './line-sender';

export interface UdpSenderOptions {
  readonly host: string;
  readonly port: number;
  /** Milliseconds to wait for an ICMP error after the first datagrams; 50 if undefined. */
  readonly icmpWait?: number;
}

/** The payload of an Ethernet frame less the headers of IPv6 and a tunnel; the size that statsd daemons recommend. */
const MAX_DATAGRAM = 1432;
const ICMP_WAIT = 50;

/**
 * Sends lines over UDP, as many whole ones per datagram as fit. The only sign that no process listens on the port is an ICMP error
 * from its host, so the first {@link send} after {@link open} waits for one.
 */
export class UdpSender implements LineSender {
  readonly #options: UdpSenderOptions;
  readonly destination: string;
  #socket: Socket | undefined;
  #error: Error | undefined;
  #hasWaited = false;

  constructor(options: UdpSenderOptions) {
    this.#options = options;
    this.destination = `udp://${options.host}:${options.port}`;
  }

  async open(): Promise<void> {
    this.#hasWaited = false;
    if (this.#socket !== undefined && this.#error === undefined) return;
    this.close();
    this.#error = undefined;
    const { host, port } = this.#options;
    const { address, family } = await lookup(host);
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    socket.unref();
    this.#socket = socket;
    await new Promise<void>((resolve, reject) => {
      socket.on('error', (error) => {
        this.#error = error;
        reject(error);
      });
      // The callback is only a 'connect' listener; a failure to connect is an 'error' event.
      socket.connect(port, address, resolve);
    });
  }

  async send(lines: readonly string[]): Promise<void> {
    for (const { bytes } of packets(lines, MAX_DATAGRAM)) await this.#send(bytes);
    if (!this.#hasWaited) {
      this.#hasWaited = true;
      await wait(this.#options.icmpWait ?? ICMP_WAIT, undefined, { ref: false });
    }
    if (this.#error !== undefined) throw this.#error;
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
        this.#error = error;
        reject(error);
      });
    });
  }
}
