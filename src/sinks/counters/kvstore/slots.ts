import { type Observable, Subject, combineLatest, defer, map, merge, repeat, retry, timer } from 'rxjs';
import { formatHostPort, parseServerAddress } from '../../../text/host-port';
import { type Server, nameOf } from '../server-address';
import { type Connection, firstAnswer } from './connection';
import type { StoreClient } from './store-client';
import { portIn } from './replies';

export const SLOTS = 16_384;
/** How often the slots are read without a particular reason, in milliseconds. */
const REFRESH_INTERVAL = 5000;
/** Least time between two reads, in milliseconds. */
const MIN_INTERVAL = 100;

/** Most nodes that are queried for one read, in addition to the configured ones: each may take until its timeout. */
const MAX_QUERIED = 8;

/** A range of slots, both ends included, and the server that holds it. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: Server;
}

/**
 * Reads which node holds which slot. Each read queries a different node first, because a node that is cut off from the
 * others still returns the slots that it last knew; further nodes are queried when it fails.
 */
export class SlotReader {
  /** The slots: now, every few seconds, and after {@link refresh}. Never fails, never completes. */
  readonly slots$: Observable<readonly SlotRange[]>;
  readonly #client: StoreClient;
  readonly #seeds: readonly Server[];
  readonly #refresh$ = new Subject<void>();
  /** In the order of queries. */
  #nodes: readonly Server[];

  /** @param onFailure called for each read in which every node failed. It is retried. */
  constructor(seeds: readonly Server[], client: StoreClient, onFailure: (error: Error) => void) {
    this.#client = client;
    this.#seeds = seeds;
    this.#nodes = seeds;
    const { scheduler } = client;
    this.slots$ = defer(() => this.#read()).pipe(
      retry({
        delay: (error: Error, attempt) => {
          onFailure(error);
          return timer(client.retryDelay(attempt), scheduler);
        },
      }),
      repeat({
        delay: () =>
          merge(timer(REFRESH_INTERVAL, scheduler), combineLatest([timer(MIN_INTERVAL, scheduler), this.#refresh$])),
      }),
    );
  }

  /** Reads the slots soon, because they may have changed. Without effect while they are read. */
  refresh(): void {
    this.#refresh$.next();
  }

  #read(): Observable<readonly SlotRange[]> {
    const servers = distinct([...this.#nodes, ...this.#seeds]);
    const timeout = this.#client.queryTimeout;
    return firstAnswer(servers, {
      open: (server) => this.#client.connect(server, { counts: false, timeout }),
      ask: readSlots,
      timeout,
      scheduler: this.#client.scheduler,
      problem: 'no cluster node returned the slots',
    }).pipe(
      map(({ server, answer }) => {
        const masters = distinct(answer.map(({ master }) => master));
        function isQueried(master: Server): boolean {
          return nameOf(master) === nameOf(server);
        }
        const others = masters.filter((master) => !isQueried(master)).slice(0, MAX_QUERIED - 1);
        this.#nodes = [...others, server];
        return answer;
      }),
    );
  }
}

function distinct(servers: readonly Server[]): readonly Server[] {
  return [...new Map(servers.map((server) => [nameOf(server), server])).values()];
}

type RangeReply = readonly [first: number, last: number, master?: readonly unknown[]];

async function readSlots(connection: Connection, server: Server): Promise<readonly SlotRange[]> {
  const reply = await connection.send('CLUSTER', 'SLOTS');
  const ranges = (reply as readonly RangeReply[]).flatMap(([first, last, master = []]): SlotRange[] => {
    const [masterHost] = master;
    const port = portIn(master[1]);
    // `?` is a node whose host the others do not know.
    if (masterHost === '?' || port === undefined) return [];
    const host = typeof masterHost === 'string' && masterHost !== '' ? masterHost : hostOf(server);
    return [{ first, last, master: { kind: 'tcp', host, port, family: 0 } }];
  });
  if (ranges.length === 0) throw new Error('the list of slots is empty');
  return ranges;
}

/** The host that a node means when it omits one in a reply. */
function hostOf(server: Server): string {
  return server.kind === 'tcp' ? server.host : 'localhost';
}

/** Where a command has to be sent instead. */
export interface Redirect {
  readonly kind: 'MOVED' | 'ASK';
  readonly server: Server;
}

/**
 * Reads `MOVED slot host:port` and `ASK slot host:port`; undefined for any other error.
 *
 * @param replied the node that replied
 */
export function readRedirect(error: Error, replied: Server): Redirect | undefined {
  const match = /^(MOVED|ASK) \d+ (\S*):(\d+)/.exec(error.message);
  if (match === null) return undefined;
  const [, kind, host, port] = match as unknown as [string, Redirect['kind'], string, string];
  const name = formatHostPort((host || hostOf(replied)).replace(/^\[(.*)\]$/, '$1'), Number(port));
  const address = parseServerAddress(name);
  return address && { kind, server: { kind: 'tcp', ...address, family: 0 } };
}

const OPENING = 0x7b;
const CLOSING = 0x7d;

/** CRC-16 as Redis Cluster uses it (XMODEM: polynomial 0x1021, no reflection), for one byte at a time. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});

/**
 * The slot of a key: the CRC of the whole key or, when it has a hash tag, of the text between its first `{` and the
 * next `}` (Redis Cluster specification, hash tags; an empty tag does not count). Keys contain values that callers
 * sent, so tags do occur.
 */
export function keySlot(key: string): number {
  const bytes = Buffer.from(key);
  const opening = bytes.indexOf(OPENING);
  const closing = opening < 0 ? -1 : bytes.indexOf(CLOSING, opening + 1);
  return closing > opening + 1 ? crc16(bytes, opening + 1, closing) : crc16(bytes, 0, bytes.length);
}

function crc16(bytes: Uint8Array, start: number, end: number): number {
  let crc = 0;
  for (let index = start; index < end; index += 1) {
    crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ (bytes[index] as number)) & 0xff] as number)) & 0xffff;
  }
  return crc % SLOTS;
}
