import { formatHostPort } from '../../../../../text/host-port';
import { type Server, tcpServer } from '../../../server-address';

/** A range of slots, both ends included, and the server that holds it. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: Server;
}

/**
 * Reads the reply to CLUSTER SLOTS.
 *
 * @param nodeHost the host of the node that replied: a node that does not know its own host omits it
 */
export function readSlots(reply: unknown, nodeHost: string): readonly SlotRange[] {
  if (!Array.isArray(reply)) throw new Error('the reply to CLUSTER SLOTS is not a list');
  return reply.flatMap((range: unknown): SlotRange[] => {
    if (!Array.isArray(range)) return [];
    const [first, last, master] = range as readonly unknown[];
    const [masterHost, port] = Array.isArray(master) ? (master as readonly unknown[]) : [];
    // `?` is a node whose host the others do not know.
    if (masterHost === '?' || !(Number(port) > 0)) return [];
    const name = typeof masterHost === 'string' && masterHost !== '' ? masterHost : nodeHost;
    return [
      { first: Number(first), last: Number(last), master: { kind: 'tcp', host: name, port: Number(port), family: 0 } },
    ];
  });
}

/** Where a command has to be sent instead. */
export interface Redirect {
  readonly kind: 'MOVED' | 'ASK';
  readonly slot: number;
  readonly server: Server;
}

/**
 * Reads `MOVED slot host:port` and `ASK slot host:port`; undefined for any other error.
 *
 * @param nodeHost the host of the node that replied, which is meant when the error omits the host
 */
export function readRedirect(error: Error, nodeHost: string): Redirect | undefined {
  const match = /^(MOVED|ASK) (\d+) (\S*):(\d+)/.exec(error.message);
  if (match === null) return undefined;
  const [, kind, slot, host, port] = match as unknown as [string, Redirect['kind'], string, string, string];
  const server = tcpServer(formatHostPort((host || nodeHost).replace(/^\[(.*)\]$/, '$1'), Number(port)));
  return { kind, slot: Number(slot), server };
}
