import { type Observable, Subject, firstValueFrom, switchMap } from 'rxjs';
import type { Backoff } from '../../../../../streams/backoff';
import { asError, messageOf } from '../../../../../text/thrown';
import { type Server, nameOf } from '../../../server-address';
import type { Connection } from '../../connections/connection';
import { limitReplyTime } from '../../connections/reply-timer';
import { type SlotRange, readSlots } from './slots';

const SLOTS = 16_384;
/** How often the slots are read without a particular reason, in milliseconds. */
const REFRESH_INTERVAL = 5000;
/** Least time between two reads that {@link Topology.refresh} causes, in milliseconds. */
const MIN_INTERVAL = 100;
/** Time limit for one node, in milliseconds: one that hangs must not delay the query of the next. */
const QUERY_TIMEOUT = 1000;

export interface TopologyOptions {
  readonly seeds: readonly Server[];
  readonly connect: (server: Server) => Observable<Connection>;
  /** KVSTORE_TIMEOUT in milliseconds, 0: no limit. */
  readonly timeout: number;
  readonly retryDelay: Backoff;
}

/**
 * Which node holds which slot. Each read queries a different node first, because a node that is cut off from the others
 * still returns the slots that it last knew; further nodes are queried when it fails.
 */
export class Topology {
  readonly #options: TopologyOptions;
  readonly #masters$ = new Subject<ReadonlyMap<string, Server>>();
  readonly #failures$ = new Subject<Error>();
  /** The masters that hold slots, by name, after each read. */
  readonly masters$ = this.#masters$.asObservable();
  /** Reads in which every node failed. They are retried. */
  readonly failures$ = this.#failures$.asObservable();
  readonly #owners: (Server | undefined)[] = Array.from({ length: SLOTS });
  /** The nodes in the order of queries. */
  #nodes: readonly Server[];
  #timer: NodeJS.Timeout | undefined;
  #isReading = false;
  #isClosed = false;
  /** Failed reads in a row. */
  #failedReads = 0;
  #lastRead = -Infinity;

  constructor(options: TopologyOptions) {
    this.#options = options;
    this.#nodes = options.seeds;
    this.#readIn(0);
  }

  ownerOf(slot: number): Server | undefined {
    return this.#owners[slot];
  }

  /** Records a MOVED reply for this slot only: the reply does not say how much of the slot's range has moved. */
  moved(slot: number, server: Server): void {
    this.#owners[slot] = server;
    this.refresh();
  }

  /** Reads the slots soon, because they may have changed. */
  refresh(): void {
    if (this.#isReading || this.#failedReads > 0) return;
    this.#readIn(Math.max(0, this.#lastRead + MIN_INTERVAL - performance.now()));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #readIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#isReading = true;
      this.#read().then(
        () => this.#finishRead(undefined),
        (error: unknown) => this.#finishRead(asError(error)),
      );
    }, milliseconds);
  }

  #finishRead(error: Error | undefined): void {
    this.#isReading = false;
    this.#lastRead = performance.now();
    if (error === undefined) {
      this.#failedReads = 0;
      return this.#readIn(REFRESH_INTERVAL);
    }
    this.#failedReads += 1;
    this.#failures$.next(error);
    return this.#readIn(this.#options.retryDelay(this.#failedReads));
  }

  async #read(): Promise<void> {
    const failures: string[] = [];
    const queried = new Set<string>();
    for (const server of [...this.#nodes, ...this.#options.seeds]) {
      if (this.#isClosed || queried.has(nameOf(server))) continue;
      queried.add(nameOf(server));
      try {
        return this.#update(await this.#query(server), server);
      } catch (error) {
        failures.push(`${nameOf(server)}: ${messageOf(error)}`);
      }
    }
    throw new Error(`no cluster node returned the slots (${failures.join('; ')})`);
  }

  async #query(server: Server): Promise<readonly SlotRange[]> {
    const { timeout, connect } = this.#options;
    const reply$ = connect(server).pipe(
      switchMap((connection) => connection.send('CLUSTER', 'SLOTS')),
      limitReplyTime(timeout > 0 ? Math.min(timeout, QUERY_TIMEOUT) : QUERY_TIMEOUT),
    );
    const ranges = readSlots(await firstValueFrom(reply$), server.kind === 'tcp' ? server.host : 'localhost');
    if (ranges.length === 0) throw new Error('the list of slots is empty');
    return ranges;
  }

  #update(ranges: readonly SlotRange[], queried: Server): void {
    const masters = new Map<string, Server>();
    this.#owners.fill(undefined);
    for (const { first, last, master } of ranges) {
      const name = nameOf(master);
      const known = masters.get(name) ?? master;
      masters.set(name, known);
      this.#owners.fill(known, first, last + 1);
    }
    // The node that replied is queried last the next time.
    function isQueried(master: Server): boolean {
      return nameOf(master) === nameOf(queried);
    }
    const nodes = [...masters.values()];
    this.#nodes = [...nodes.filter((master) => !isQueried(master)), ...nodes.filter(isQueried)];
    if (!this.#isClosed) this.#masters$.next(masters);
  }
}
