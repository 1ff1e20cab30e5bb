import { type Socket, createSocket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { type LineSender, MAX_DATAGRAM_LINE, packets } from './senders';

export interface UdpSenderOptions {
  readonly host: string;
  readonly port: number;
  /** Milliseconds to wait for an ICMP error after the first datagrams; 50 if undefined. */
  readonly icmpWait?: number;
  /** The addresses of a host; those that the system knows if undefined. */
  readonly resolve?: (host: string) => Promise<readonly LookupAddress[]>;
}

/** The payload of an Ethernet frame less the headers of IPv6 and a tunnel; the size that statsd daemons recommend. */
const MAX_DATAGRAM = 1432;
const ICMP_WAIT = 50;

/**
 * Sends lines over UDP, as many whole ones per datagram as fit. The only sign that no process listens on the port is an
 * ICMP error from its host, so the first {@link send} after {@link open} waits for one. A host that has disappeared
 * sends no error, so each {@link open} resolves its name. Of several addresses, one is used until it fails, then the
 * next one.
 */
export class UdpSender implements LineSender {
  readonly #options: Required<UdpSenderOptions>;
  readonly destination: string;
  readonly maxLineBytes = MAX_DATAGRAM_LINE;
  #socket: Socket | undefined;
  /** Why the last connection has failed, until the next one is attempted. */
  #error: Error | undefined;
  #hasWaited = false;
  /** The address of the last attempt to connect. */
  #address: LookupAddress | undefined;

  constructor(options: UdpSenderOptions) {
    this.#options = { icmpWait: ICMP_WAIT, resolve: systemAddresses, ...options };
    this.destination = `udp://${options.host}:${options.port}`;
  }

  async open(): Promise<void> {
    const { host, port } = this.#options;
    const addresses = await this.#addresses();
    const last = addresses.findIndex(({ address }) => address === this.#address?.address);
    // After a failure, the one after it: of `localhost`, a daemon often has only one of the two.
    const next = addresses[Math.max(0, this.#error === undefined ? last : (last + 1) % addresses.length)];
    if (next === undefined) throw new Error(`${host} has no address`);
    await this.#connect(next, port);
  }

  /** The addresses of the host; while its name cannot be resolved, the last one, if it works. */
  async #addresses(): Promise<readonly LookupAddress[]> {
    const { host, resolve } = this.#options;
    try {
      // The system may list an address twice: the one after it must be another one.
      return [...new Map((await resolve(host)).map((each) => [each.address, each])).values()];
    } catch (error) {
      if (this.#address === undefined || this.#error !== undefined) throw error;
      return [this.#address];
    }
  }

  async #connect(to: LookupAddress, port: number): Promise<void> {
    this.close();
    this.#error = undefined;
    this.#hasWaited = false;
    this.#address = to;
    const socket = createSocket(to.family === 6 ? 'udp6' : 'udp4');
    socket.unref();
    this.#socket = socket;
    await new Promise<void>((resolve, reject) => {
      socket.on('error', (error) => {
        this.#error = error;
        reject(error);
      });
      // The callback is only a 'connect' listener; a failure to connect is an 'error' event.
      socket.connect(port, to.address, resolve);
    });
  }

  async send(lines: readonly string[]): Promise<void> {
    for (const packet of packets(lines, MAX_DATAGRAM)) await this.#send(packet);
    if (!this.#hasWaited) {
      this.#hasWaited = true;
      await wait(this.#options.icmpWait, undefined, { ref: false });
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
        this.#error ??= error ?? undefined;
        if (error === null) resolve();
        else reject(error);
      });
    });
  }
}

function systemAddresses(host: string): Promise<readonly LookupAddress[]> {
  return lookup(host, { all: true });
}
