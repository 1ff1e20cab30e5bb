import { setTimeout as sleep } from 'node:timers/promises';
import {
  BehaviorSubject,
  type Observable,
  Subject,
  Subscription,
  defer,
  distinctUntilChanged,
  map,
  merge,
  take,
  tap,
} from 'rxjs';
import {
  type Counted,
  type Operation,
  type Result,
  type Stored,
  groupLength,
  readOf,
} from '../../../counting/operation';
import { decidedOnRead, stopsWhenOver } from '../../../counting/read-then-decide';
import { DecisionError, TRY_AGAIN_AFTER } from '../../../counting/decision-error';
import type { ConditionLog } from '../../../log/condition-log';
import type { Deadline } from '../../../streams/deadline';
import type { ServerState } from '../../../streams/server-state';
import type { CounterInstance, CounterLane } from '../../../streams/ports/counters';
import { type Server, nameOf } from '../server-address';
import { CommandWindows } from './command-windows';
import type { Pool } from './pool';
import { isReply, replyCode, slotMoving, slotUnassigned } from './store-error';
import type { Connection } from './connection';
import { count, countOn } from './count';
import { type GroupResult, type SendCommand, commandsOn, joined } from './commands';
import { MovingSlots } from './moving-slots';
import { type StoreClient, type Store, QUIET, isAnswering } from './store-client';
import { SLOTS, SlotReader, type SlotRange, keySlot, readRedirect } from './slots';

/** How often an operation is redirected at most. */
const MAX_REDIRECTS = 5;
/**
 * Most nodes that are connected to, as many as the specification of Redis Cluster recommends. More are a mistake or an
 * attack.
 */
const MAX_NODES = 1000;

/**
 * Where an operation goes: to the owner of its slot or, while the slot moves, to the node that imports it (ASK
 * redirect).
 */
class Route {
  constructor(
    readonly server: Server,
    readonly isAsking: boolean,
  ) {}
}

/** A master of the cluster, its lane, and the connections to it. */
interface ClusterNode {
  readonly pool: Pool;
  readonly state: ServerState;
  readonly windows: CommandWindows;
  readonly lane: CounterLane;
  readonly route: Route;
  readonly askingRoute: Route;
  /** Emits when the node holds no slots any more. */
  readonly retired$: Subject<void>;
}

/** Operations, or whatever else concerns one key each, that are sent to the nodes of their keys. */
interface Work<T> {
  readonly keys: readonly string[];
  /** Undefined: those of a window of commands. */
  readonly deadline: Deadline | undefined;
  /** Sends those with these indices. Resolves with the result of each, or its error, which may be a redirect. */
  readonly send: (
    indices: readonly number[],
    connection: Connection,
    isAsking: boolean,
  ) => Promise<readonly (T | Error)[]>;
}

/** The result of a key, or its error, or where it still has to be sent. */
type Outcome<T> = T | DecisionError | Route;

/** How a key was sent whose result is read. */
interface Sent {
  readonly connection: Connection;
  readonly server: Server;
  readonly deadline: Deadline | undefined;
  readonly mayRedirect?: boolean;
}

/**
 * Counters on the masters of a cluster: each key on the node that holds its slot, all operations of one node in one
 * write.
 */
export class ClusterStore implements Store {
  readonly #client: StoreClient;
  readonly #failures$ = new Subject<Error>();
  readonly #connected$ = new BehaviorSubject(false);
  readonly failures$ = this.#failures$.asObservable();
  readonly connected$ = this.#connected$.pipe(distinctUntilChanged());
  readonly #slots: SlotReader;
  /** By slot; undefined: no node holds it. */
  readonly #owners: (ClusterNode | undefined)[] = Array.from({ length: SLOTS });
  readonly #nodes = new Map<string, ClusterNode>();
  readonly #moving: MovingSlots;
  /** How many nodes work for one decision at a time. */
  readonly #lanes: CounterInstance;
  /** For keys whose slot no node holds: their operations fail. */
  #unassigned: CounterLane;
  readonly #assigned$ = new Subject<void>();
  readonly #tooManyNodes: ConditionLog;
  readonly #subscription = new Subscription();

  constructor(seeds: readonly Server[], client: StoreClient) {
    this.#client = client;
    const { clusterPipelineParallelism: parallelism, poolSize, timeout } = client.options;
    this.#moving = new MovingSlots(timeout);
    this.#lanes = { lanesAtOnce: parallelism === 0 ? poolSize : Math.min(parallelism, poolSize) };
    this.#unassigned = this.#unassignedLane();
    const unknown = client.conditionLog({
      begins: 'cannot read the cluster topology; retrying',
      ends: 'the cluster topology is known again',
    });
    this.#slots = new SlotReader(seeds, client, (error) => {
      unknown.because(error.message);
      this.#failures$.next(error);
    });
    this.#tooManyNodes = client.conditionLog({
      begins: 'the cluster names more nodes than are used; calls with keys on the others fail',
      ends: 'the cluster names no more nodes than are used',
      fields: { used: MAX_NODES },
      quiet: QUIET,
    });
    client.onReadonly = () => this.#slots.refresh();
    this.#subscription.add(
      this.#slots.slots$.subscribe((ranges) => {
        unknown.ended();
        this.#assign(ranges);
      }),
    );
  }

  laneOf({ key }: Counted): CounterLane {
    return this.#owners[keySlot(key)]?.lane ?? this.#unassigned;
  }

  async run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    for (;;) {
      const work: Work<T> = {
        keys: [key],
        deadline: undefined,
        send: async (_, connection, isAsking) => {
          const done = commands(commandsOn(connection, isAsking));
          return [
            await done.catch((error: Error) => {
              if (isReply(error)) return error;
              throw error;
            }),
          ];
        },
      };
      const [outcome] = await this.#inRounds(work, [this.#routeOf(key)]);
      if (!(outcome instanceof DecisionError)) return outcome as T;
      if (!outcome.isTryAgain) throw outcome;
      await sleep(TRY_AGAIN_AFTER);
    }
  }

  /** To any node, because a message goes to all of them. */
  connect(): Observable<Connection> {
    return defer(() => {
      const nodes = [...this.#nodes.values()].filter(({ pool }) => pool.isConnected);
      const node = nodes[Math.floor(Math.random() * nodes.length)];
      if (node === undefined) throw slotUnassigned();
      const left$ = node.retired$.pipe(
        map(() => {
          throw slotUnassigned();
        }),
      );
      return merge(this.#client.connect(node.route.server, { counts: false }), left$);
    });
  }

  async close(): Promise<void> {
    // First, so that no node is connected to any more.
    this.#subscription.unsubscribe();
    await Promise.all(Array.from(this.#nodes.values(), ({ pool }) => pool.drain()));
    for (const { state } of this.#nodes.values()) state.end();
    this.#connected$.complete();
  }

  /** The operations of a batch go to the node of their lane, which redirects those whose slots have moved since. */
  async #apply(
    node: Partial<ClusterNode>,
    batch: readonly Operation[],
    deadline: Deadline,
  ): Promise<readonly Result[]> {
    if (!batch.some(stopsWhenOver)) return this.#count(node, batch, deadline);
    // No step over keys of different slots is atomic: read first, then count.
    const stored = await this.#count(node, batch.map(readOf), deadline);
    return this.#count(node, decidedOnRead(batch, stored), deadline);
  }

  async #count(
    { pool, route }: Partial<ClusterNode>,
    batch: readonly Operation[],
    deadline: Deadline,
  ): Promise<readonly Result[]> {
    const groups = groupsOfOneSlot(batch);
    const work: Work<readonly Stored[]> = {
      keys: groups.map(([first]) => first!.key),
      deadline,
      send: async (indices, connection, isAsking) => {
        const sent = indices.map((index) => groups[index] as readonly Operation[]);
        const options = { ...this.#client.countOptions, isAsking };
        return this.#countsOf(await count(connection, sent, options), connection);
      },
    };
    const isNode = pool !== undefined && route !== undefined && this.#nodes.get(nameOf(route.server))?.pool === pool;
    const { countOptions: options } = this.#client;
    const first = isNode
      ? countOn(pool, { groups, options, deadline }, (results, connection) => {
          const outcomes = this.#countsOf(results, connection);
          const sent = { connection, server: route.server, deadline };
          return outcomes.map((outcome, index) => this.#routed(outcome, work.keys[index]!, sent));
        }).catch((error: DecisionError) => this.#failAll(work.keys, error))
      : work.keys.map((key) => this.#routeOf(key));
    const results = await this.#inRounds(work, await first, Number(isNode));
    return joined(
      results.map((result, index): readonly Result[] =>
        result instanceof Error ? groups[index]!.map(() => result) : result,
      ),
    );
  }

  #countsOf(counted: readonly GroupResult[], connection: Connection): readonly (readonly Stored[] | Error)[] {
    const outcomes = counted.map(countsOrError);
    const errors = outcomes.filter((outcome) => outcome instanceof Error);
    this.#client.counted(errors, connection);
    return outcomes;
  }

  /**
   * What is redirected is sent again in the next round. Resolves with the result for each key, or its error.
   *
   * @param first where each key is to be sent, or its result if it was sent
   * @param round how often they were sent
   */
  async #inRounds<T>(work: Work<T>, first: readonly Outcome<T>[], round = 0): Promise<readonly (T | DecisionError)[]> {
    const outcomes = [...first];
    for (let sends = round; ; sends += 1) {
      const groups = stillToSend(outcomes);
      if (groups.size === 0) return outcomes as readonly (T | DecisionError)[];
      const sent = [...groups].map(async ([route, indices]) => {
        const results = await this.#send(work, indices, { route, mayRedirect: sends < MAX_REDIRECTS });
        for (const [position, index] of indices.entries()) outcomes[index] = results[position] as T;
      });
      await Promise.all(sent);
    }
  }

  #routeOf(key: string): Route | DecisionError {
    const route = this.#owners[keySlot(key)]?.route;
    if (route === undefined) this.#slots.refresh();
    return route ?? slotUnassigned();
  }

  /** Sends work to one node. Resolves with the result for each key, its error, or where it has to be sent instead. */
  async #send<T>(
    { keys, deadline, send }: Work<T>,
    indices: readonly number[],
    { route, mayRedirect }: { readonly route: Route; readonly mayRedirect: boolean },
  ): Promise<readonly Outcome<T>[]> {
    try {
      const node = this.#nodeAt(route.server);
      if (node === undefined) throw slotUnassigned();
      return await useOf(node, deadline, async (connection) => {
        const results = await send(indices, connection, route.isAsking);
        return results.map((result, position) =>
          this.#routed(result, keys[indices[position] as number] as string, {
            ...{ connection, server: route.server, deadline, mayRedirect },
          }),
        );
      });
    } catch (error) {
      return this.#failAll(indices, error as DecisionError);
    }
  }

  #failAll(sent: readonly unknown[], error: DecisionError): readonly DecisionError[] {
    this.#slots.refresh();
    return sent.map(() => error);
  }

  /** The result of a key, its error, or where it has to be sent instead. */
  #routed<T>(result: T | Error, key: string, { connection, server, deadline, mayRedirect = true }: Sent): Outcome<T> {
    if (!(result instanceof Error)) return result;
    const redirected = mayRedirect ? this.#redirect(result, server, key) : undefined;
    if (redirected !== undefined) return redirected;
    if (replyCode(result) === 'TRYAGAIN' && this.#moving.tryAgain(keySlot(key))) return slotMoving();
    return this.#client.failed(result, connection, deadline);
  }

  /** The route that a MOVED or ASK error names, undefined for other errors. The node has not counted the key. */
  #redirect(error: Error, server: Server, key: string): Route | undefined {
    if (replyCode(error) === 'CLUSTERDOWN') this.#slots.refresh();
    const redirect = isReply(error) ? readRedirect(error, server) : undefined;
    if (redirect === undefined) return undefined;
    const node = this.#nodeAt(redirect.server);
    if (redirect.kind === 'ASK' || node === undefined) return node?.askingRoute;
    // This slot only: the reply does not say how much of the slot's range has moved.
    this.#owners[keySlot(key)] = node;
    this.#slots.refresh();
    return node.route;
  }

  /** Drains the pools of nodes that hold no slots any more, and connects to new ones. */
  #assign(ranges: readonly SlotRange[]): void {
    const named = new Set(ranges.map(({ master }) => nameOf(master)));
    const leaving = [...this.#nodes].filter(([name]) => !named.has(name));
    for (const [name] of leaving) this.#nodes.delete(name);
    if (named.size <= MAX_NODES) this.#tooManyNodes.ended();
    else this.#tooManyNodes.occurred({ nodes: named.size });
    this.#owners.fill(undefined);
    for (const { first, last, master } of ranges) this.#owners.fill(this.#nodeAt(master), first, last + 1);
    this.#unassigned = this.#unassignedLane();
    this.#assigned$.next();
    this.#moving.forgetMoved();
    for (const [, { retired$, pool, state }] of leaving) {
      retired$.next();
      state.end();
      void pool.drain();
    }
    this.#update();
  }

  /** The node, connected to if it is a new one; undefined: there are too many. */
  #nodeAt(server: Server): ClusterNode | undefined {
    const name = nameOf(server);
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    if (this.#nodes.size >= MAX_NODES) {
      this.#tooManyNodes.occurred({ nodes: this.#nodes.size + 1 });
      return undefined;
    }
    const state = this.#client.stateOf(name, () => pool.probe());
    const pool: Pool = this.#client.openPool(state, () => this.#client.connect(server));
    const retired$ = new Subject<void>();
    const [route, askingRoute] = [new Route(server, false), new Route(server, true)];
    const parts = { pool, state, route, askingRoute, retired$ };
    const lane = this.#lane(parts, retired$);
    const node = { ...parts, lane, windows: new CommandWindows(pool, lane.pipeline) };
    this.#nodes.set(name, node);
    const changes$ = merge(
      isAnswering(pool, state).pipe(tap(() => this.#update())),
      pool.failures$.pipe(
        tap((error) => {
          // The node may have failed and its slots moved to another.
          this.#slots.refresh();
          this.#failures$.next(error);
        }),
      ),
    );
    // Completes, and so leaves the subscription, when the pool is closed.
    this.#subscription.add(changes$.subscribe());
    return node;
  }

  #lane(node: Partial<ClusterNode>, retired$: Observable<unknown>): CounterLane {
    return this.#client.lane(node.state, { apply: this.#apply.bind(this, node), instance: this.#lanes, retired$ });
  }

  /**
   * Another one with each assignment, so that what is known of the one before is known of slots that are assigned now.
   */
  #unassignedLane(): CounterLane {
    return this.#lane({}, this.#assigned$.pipe(take(1)));
  }

  #update(): void {
    this.#connected$.next(
      [...this.#nodes.values()].some(({ pool, state }) => pool.isConnected && state.report.condition !== 'silent'),
    );
  }
}

function useOf<T>(
  { pool, windows }: ClusterNode,
  deadline: Deadline | undefined,
  run: (connection: Connection) => Promise<T>,
): Promise<T> {
  return deadline === undefined ? windows.run(run) : pool.use(deadline, run);
}

/** Each operation, or those with algorithms and a common group, which are limits of one rule. */
function groupsOfOneSlot(batch: readonly Operation[]): readonly (readonly Operation[])[] {
  const groups: Operation[][] = [];
  for (let index = 0; index < batch.length;) {
    const length = batch[index]?.limit.algorithm === undefined ? 1 : groupLength(batch, index);
    groups.push(batch.slice(index, index + length));
    index += length;
  }
  return groups;
}

/** The counts of such a group, which fails as a whole. */
function countsOrError(result: GroupResult): readonly Stored[] | Error {
  if (result instanceof Error) return result;
  return result.find((each) => each instanceof Error) ?? (result as readonly Stored[]);
}

/** The indices of what is still to be sent, by where it goes. */
function stillToSend(outcomes: readonly unknown[]): ReadonlyMap<Route, readonly number[]> {
  const groups = new Map<Route, number[]>();
  for (const [index, outcome] of outcomes.entries()) {
    if (!(outcome instanceof Route)) continue;
    const group = groups.get(outcome);
    if (group === undefined) groups.set(outcome, [index]);
    else group.push(index);
  }
  return groups;
}
