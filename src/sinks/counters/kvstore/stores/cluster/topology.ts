import { type Observable, Subject, firstValueFrom, switchMap, timeout as timeLimit } from 'rxjs';
import { type Server, nameOf } from '../../connections/address';
import type { RetryDelay } from '../../connections/backoff';
import type { Connection } from '../../connections/connection';
import { type SlotRange, readSlots } from './slots';
import { messageOf } from '../../../../../text/thrown';

const SLOTS = 16_384;
/** How often the nodes are asked for their slots when nothing gives a reason to, in milliseconds. */
const EVERY = 5000;
/** Reasons within this many milliseconds of an answer do not ask again before it is over. */
const PAUSE = 100;
/** What a node may take for its answer, in milliseconds: one that hangs must not keep us from the next. */
const PATIENCE = 1000;

export interface TopologyOptions {
  readonly seeds: readonly Server[];
  readonly connect: (server: Server) => Observable<Connection>;
  /** KVSTORE_TIMEOUT in milliseconds, 0: no limit. */
  readonly timeout: number;
  readonly backoff: RetryDelay;
}

/**
 * Which node holds which slot. Asked of one node after another, a different one each time: one that has been cut off from
 * the rest still tells its old story.
 */
export class Topology {
  readonly #options: TopologyOptions;
  /** The masters that hold slots, by name, whenever they were asked for. */
  readonly masters$ = new Subject<ReadonlyMap<string, Server>>();
  readonly failures$ = new Subject<Error>();
  readonly #owners: (Server | undefined)[] = Array.from({ length: SLOTS });
  #known: readonly Server[];
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;
  #isClosed = false;
  #attempt = 0;
  #lastAsked = -Infinity;

  constructor(options: TopologyOptions) {
    this.#options = options;
    this.#known = options.seeds;
    this.#askIn(0);
  }

  ownerOf(slot: number): Server | undefined {
    return this.#owners[slot];
  }

  /** A node has said that the slot has moved. Only this slot: what of its range moves with it is not known yet. */
  moved(slot: number, server: Server): void {
    this.#owners[slot] = server;
    this.refresh();
  }

  /** There is reason to ask anew. */
  refresh(): void {
    if (this.#isAsking || this.#attempt > 0) return;
    this.#askIn(Math.max(0, this.#lastAsked + PAUSE - performance.now()));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #askIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#isAsking = true;
      this.#askInTurn().then(
        () => this.#asked(undefined),
        (error: Error) => this.#asked(error),
      );
    }, milliseconds);
  }

  #asked(error: Error | undefined): void {
    this.#isAsking = false;
    this.#lastAsked = performance.now();
    if (error === undefined) {
      this.#attempt = 0;
      return this.#askIn(EVERY);
    }
    this.#attempt += 1;
    this.failures$.next(error);
    return this.#askIn(this.#options.backoff(this.#attempt));
  }

  async #askInTurn(): Promise<void> {
    const failures: string[] = [];
    const { seeds } = this.#options;
    const names = new Set<string>();
    for (const server of [...this.#known, ...seeds]) {
      if (this.#isClosed || names.has(nameOf(server))) continue;
      names.add(nameOf(server));
      try {
        return this.#learn(await this.#ask(server), server);
      } catch (error) {
        failures.push(`${nameOf(server)}: ${messageOf(error)}`);
      }
    }
    throw new Error(`no node of the cluster tells who holds which slot (${failures.join('; ')})`);
  }

  #ask(server: Server): Promise<readonly SlotRange[]> {
    const { timeout, connect } = this.#options;
    const patience = timeout > 0 ? Math.min(timeout, PATIENCE) : PATIENCE;
    const answers$ = connect(server).pipe(
      switchMap((connection) => connection.send('CLUSTER', 'SLOTS')),
      timeLimit({ first: patience }),
    );
    return firstValueFrom(answers$).then((reply) => {
      const ranges = readSlots(reply, server.kind === 'tcp' ? server.host : 'localhost');
      if (ranges.length === 0) throw new Error('knows of no slots');
      return ranges;
    });
  }

  #learn(ranges: readonly SlotRange[], asked: Server): void {
    const masters = new Map<string, Server>();
    this.#owners.fill(undefined);
    for (const { first, last, master } of ranges) {
      const name = nameOf(master);
      const known = masters.get(name) ?? master;
      masters.set(name, known);
      this.#owners.fill(known, first, last + 1);
    }
    // Next time another one comes first.
    const others = [...masters.values()].filter((master) => nameOf(master) !== nameOf(asked));
    this.#known = [...others, ...[...masters.values()].filter((master) => nameOf(master) === nameOf(asked))];
    if (!this.#isClosed) this.masters$.next(masters);
  }
}
