import { type Server, hostPort, parseHostPort } from '../../connections/address';

/** Which server holds a range of slots; both ends belong to it. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: Server;
}

/**
 * Reads the reply to CLUSTER SLOTS.
 *
 * @param asked the host that was asked: a node that does not know its own leaves it out, and means this one
 */
export function readSlots(reply: unknown, asked: string): readonly SlotRange[] {
  if (!Array.isArray(reply)) throw new Error('the server gave no list of slots');
  return reply.flatMap((range: unknown): SlotRange[] => {
    if (!Array.isArray(range)) return [];
    const [first, last, master] = range as readonly unknown[];
    const [host, port] = Array.isArray(master) ? (master as readonly unknown[]) : [];
    // A node whose name is not known to the others shows as `?`.
    if (host === '?' || !(Number(port) > 0)) return [];
    const name = typeof host === 'string' && host !== '' ? host : asked;
    return [
      { first: Number(first), last: Number(last), master: { kind: 'tcp', host: name, port: Number(port), family: 0 } },
    ];
  });
}

/** Where a command has to go instead. */
export interface Redirect {
  readonly kind: 'MOVED' | 'ASK';
  readonly slot: number;
  readonly server: Server;
}

/**
 * Reads `MOVED slot host:port` and `ASK slot host:port`; undefined for any other error.
 *
 * @param asked the host of the server that said so: one that it leaves out means this one
 */
export function readRedirect(error: Error, asked: string): Redirect | undefined {
  const match = /^(MOVED|ASK) (\d+) (\S*):(\d+)/.exec(error.message);
  if (match === null) return undefined;
  const [, kind, slot, host, port] = match as unknown as [string, Redirect['kind'], string, string, string];
  const server = parseHostPort(hostPort((host || asked).replace(/^\[(.*)\]$/, '$1'), Number(port)));
  return { kind, slot: Number(slot), server };
}
