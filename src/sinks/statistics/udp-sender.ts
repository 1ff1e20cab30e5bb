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
  /** Milliseconds after which the host is resolved again; 30 s if undefined. */
  readonly resolveInterval?: number;
  /** The addresses of a host; those that the system knows if undefined. */
  readonly resolve?: (host: string) => Promise<readonly LookupAddress[]>;
}

/** The payload of an Ethernet frame less the headers of IPv6 and a tunnel; the size that statsd daemons recommend. */
const MAX_DATAGRAM = 1432;
const ICMP_WAIT = 50;
const RESOLVE_INTERVAL = 30_000;

/**
 * Sends lines over UDP, as many whole ones per datagram as fit. The only sign that no process listens on the port is an ICMP error
 * from its host, so the first {@link send} after {@link open} waits for one. A host that has disappeared sends no error, so its
 * name is resolved again at intervals. Of several addresses, one is used until it fails, then the next one.
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
  #address = '';
  #resolvedAt = 0;

  constructor(options: UdpSenderOptions) {
    this.#options = { icmpWait: ICMP_WAIT, resolveInterval: RESOLVE_INTERVAL, resolve: systemAddresses, ...options };
    this.destination = `udp://${options.host}:${options.port}`;
  }

  async open(): Promise<void> {
    const { host, port, resolve: addressesOf, resolveInterval } = this.#options;
    this.#hasWaited = false;
    const isUsable = this.#socket !== undefined && this.#error === undefined;
    if (isUsable && performance.now() < this.#resolvedAt + resolveInterval) return;
    let addresses: readonly LookupAddress[];
    try {
      addresses = await addressesOf(host);
    } catch (error) {
      if (!isUsable) throw error;
      // The last known address stays in use.
      addresses = [];
    }
    this.#resolvedAt = performance.now();
    if (isUsable && (addresses.length === 0 || addresses.some(({ address }) => address === this.#address))) return;
    const next = this.#nextOf(addresses);
    if (next === undefined) throw new Error(`${host} has no address`);
    await this.#connect(next, port);
  }

  async #connect({ address, family }: LookupAddress, port: number): Promise<void> {
    this.close();
    this.#error = undefined;
    this.#address = address;
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

  /** The first address; after a failure, the one after the last address: of `localhost`, a daemon often has only one of the two. */
  #nextOf(all: readonly LookupAddress[]): LookupAddress | undefined {
    // The system may list an address twice: the one after it must be another one.
    const addresses = all.filter(({ address }, index) => all.findIndex((other) => other.address === address) === index);
    const last = addresses.findIndex(({ address }) => address === this.#address);
    return addresses[this.#error === undefined ? 0 : (last + 1) % addresses.length];
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
