import { BehaviorSubject, type Observable, Subject, Subscription, distinctUntilChanged, merge, tap } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import type { DecisionError } from '../../../limiter/decision-error';
import type { CounterInstance, CounterLane } from '../../../streams/ports/counters';
import { decideGuards, readsOf } from '../counting';
import { type Server, nameOf } from '../server-address';
import { Deadline } from './deadline';
import type { Pool } from './pool';
import { isReply, replyCode, slotUnassigned, timedOut } from './store-error';
import { count } from './count';
import { type SendCommand, type StepResult, commandsOn } from './commands';
import type { Instance, Store } from './instance';
import { SLOTS, SlotReader, type SlotRange, keySlot, readRedirect } from './slots';

/** How often an operation is redirected at most. */
const MAX_REDIRECTS = 5;

/** Where an operation goes: to the owner of its slot or, while the slot moves, to the node that imports it (ASK redirect). */
interface Route {
  readonly server: Server;
  readonly isAsking: boolean;
}

/** What became of an operation so far; a route: it is still to be sent. */
type Outcome = Count | Route;

interface RoundLimits {
  readonly deadline: Deadline;
  /** Redirects count as failures. */
  readonly isLast: boolean;
}

/** A master of the cluster, its lane, and the connections to it. */
class ClusterNode {
  readonly pool: Pool;
  readonly lane: CounterLane;
  readonly route: Route;
  readonly askingRoute: Route;
  readonly #retired$ = new Subject<void>();

  constructor(server: Server, pool: Pool, laneOf: (retired$: Observable<unknown>) => CounterLane) {
    this.route = { server, isAsking: false };
    this.askingRoute = { server, isAsking: true };
    this.pool = pool;
    this.lane = laneOf(this.#retired$.asObservable());
  }

  /** The node holds no slots any more: closes its pool once its batches in flight have ended. */
  retire(): void {
    this.#retired$.next();
    this.pool.drain();
  }
}

/** Counters on the masters of a cluster: each key on the node that holds its slot, all operations of one node in one write. */
export class ClusterStore implements Store {
  readonly #instance: Instance;
  readonly #failures$ = new Subject<Error>();
  readonly #connected$ = new BehaviorSubject(false);
  readonly failures$ = this.#failures$.asObservable();
  readonly connected$ = this.#connected$.pipe(distinctUntilChanged());
  readonly #slots: SlotReader;
  /** By slot; undefined: no node holds it. */
  readonly #owners: (ClusterNode | undefined)[] = Array.from({ length: SLOTS });
  readonly #nodes = new Map<string, ClusterNode>();
  /** How many nodes work for one decision at a time. */
  readonly #lanes: CounterInstance;
  /** For keys whose slot no node holds: their operations fail. */
  readonly #unassigned: CounterLane;
  readonly #subscription = new Subscription();

  constructor(seeds: readonly Server[], instance: Instance) {
    this.#instance = instance;
    const { clusterPipelineParallelism: parallelism, poolSize } = instance.options;
    this.#lanes = { lanesAtOnce: parallelism === 0 ? poolSize : Math.min(parallelism, poolSize) };
    this.#unassigned = this.#lane();
    const unknown = instance.conditionLog({
      begins: 'cannot read the cluster topology; retrying',
      ends: 'the cluster topology is known again',
    });
    this.#slots = new SlotReader(seeds, instance, (error) => {
      unknown.because(error.message);
      this.#failures$.next(error);
    });
    instance.onReadonly = () => this.#slots.refresh();
    this.#subscription.add(
      this.#slots.slots$.subscribe((ranges) => {
        unknown.ended();
        this.#assign(ranges);
      }),
    );
  }

  laneOf({ key }: CounterOperation): CounterLane {
    return this.#owners[keySlot(key)]?.lane ?? this.#unassigned;
  }

  run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    return Deadline.within(this.#instance.options.timeout, async (deadline) => {
      try {
        let route = this.#routeOf(key);
        for (let round = 0; route !== undefined; round += 1) {
          const limits = { deadline, isLast: round === MAX_REDIRECTS };
          const outcome: { readonly value: T } | Route = await this.#runAt(route, { key, commands }, limits);
          if ('value' in outcome) return outcome.value;
          route = outcome;
        }
        throw slotUnassigned();
      } catch (error) {
        this.#slots.refresh();
        throw error;
      }
    });
  }

  close(): void {
    this.#subscription.unsubscribe();
    for (const { pool } of this.#nodes.values()) pool.close();
    this.#connected$.complete();
  }

  /** Resolves with what the commands return, or where they have to be run instead. */
  #runAt<T>(
    { server, isAsking }: Route,
    { key, commands }: { readonly key: string; readonly commands: (send: SendCommand) => Promise<T> },
    { deadline, isLast }: RoundLimits,
  ): Promise<{ readonly value: T } | Route> {
    return this.#nodeAt(server).pool.use(deadline, async (connection) => {
      try {
        return { value: await commands(commandsOn(connection, isAsking)) };
      } catch (error) {
        const redirected = isLast ? undefined : this.#redirect(error as Error, server, key);
        if (redirected !== undefined) return redirected;
        throw isReply(error) ? this.#instance.failed(error, connection) : error;
      }
    });
  }

  /** The operations of a batch go to the node of their lane, unless their slots have moved since. */
  async #apply(batch: readonly CounterOperation[], deadline: Deadline): Promise<readonly Count[]> {
    if (!batch.some(({ guard }) => guard !== undefined)) return this.#count(batch, deadline);
    // No step over keys of different slots is atomic: read first, then count.
    const stored = await this.#count(readsOf(batch), deadline);
    return this.#count(decideGuards(batch, stored), deadline);
  }

  /** Counts in rounds: each operation that is redirected is sent again in the next one. */
  async #count(batch: readonly CounterOperation[], deadline: Deadline): Promise<readonly Count[]> {
    const outcomes = batch.map(({ key }): Outcome => this.#routeOf(key) ?? slotUnassigned());
    if (outcomes.some((outcome) => outcome instanceof Error)) this.#slots.refresh();
    for (let round = 0; ; round += 1) {
      const groups = stillToSend(outcomes);
      if (groups.size === 0) return outcomes as readonly Count[];
      const isLast = round === MAX_REDIRECTS;
      const sent = [...groups].map(async ([route, indices]) => {
        const operations = indices.map((index) => batch[index] as CounterOperation);
        const results = await this.#send(operations, route, { deadline, isLast });
        for (const [position, index] of indices.entries()) outcomes[index] = results[position] as Outcome;
      });
      await Promise.all(sent);
    }
  }

  /** Sends operations to one node. Resolves with the count of each, its error, or where it has to be sent instead. */
  async #send(
    operations: readonly CounterOperation[],
    { server, isAsking }: Route,
    { deadline, isLast }: RoundLimits,
  ): Promise<readonly Outcome[]> {
    try {
      return await this.#nodeAt(server).pool.use(deadline, async (connection) => {
        const groups = operations.map((operation) => [operation]);
        const options = { ...this.#instance.expiries, isAsking };
        const results = (await count(connection, groups, options)).map((group, index) => {
          const result = group instanceof Error ? group : (group[0] as StepResult);
          if (typeof result === 'number') return result;
          const redirected = isLast ? undefined : this.#redirect(result, server, operations[index]!.key);
          return redirected ?? (deadline.hasPassed && !isReply(result) ? timedOut() : result);
        });
        return this.#instance.outcomes(results, connection);
      });
    } catch (error) {
      this.#slots.refresh();
      return operations.map(() => error as DecisionError);
    }
  }

  #routeOf(key: string): Route | undefined {
    return this.#owners[keySlot(key)]?.route;
  }

  /** The route that a MOVED or ASK error names, undefined for other errors. The node has not counted the key. */
  #redirect(error: Error, server: Server, key: string): Route | undefined {
    if (replyCode(error) === 'CLUSTERDOWN') this.#slots.refresh();
    const redirect = isReply(error) ? readRedirect(error, server) : undefined;
    if (redirect === undefined) return undefined;
    const node = this.#nodeAt(redirect.server);
    if (redirect.kind === 'ASK') return node.askingRoute;
    // This slot only: the reply does not say how much of the slot's range has moved.
    this.#owners[keySlot(key)] = node;
    this.#slots.refresh();
    return node.route;
  }

  /** Drains the pools of nodes that hold no slots any more, and connects to new ones. */
  #assign(ranges: readonly SlotRange[]): void {
    const owners = new Set<ClusterNode>();
    this.#owners.fill(undefined);
    for (const { first, last, master } of ranges) {
      const node = this.#nodeAt(master);
      owners.add(node);
      this.#owners.fill(node, first, last + 1);
    }
    for (const [name, node] of this.#nodes) {
      if (owners.has(node)) continue;
      this.#nodes.delete(name);
      node.retire();
    }
    this.#update();
  }

  #nodeAt(server: Server): ClusterNode {
    const name = nameOf(server);
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const pool = this.#instance.openPool(name, () => this.#instance.connect(server));
    const node = new ClusterNode(server, pool, (retired$) => this.#lane(retired$));
    this.#nodes.set(name, node);
    const changes$ = merge(
      pool.connected$.pipe(tap(() => this.#update())),
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

  #lane(retired$?: Observable<unknown>): CounterLane {
    return this.#instance.lane((batch, deadline) => this.#apply(batch, deadline), this.#lanes, retired$);
  }

  #update(): void {
    this.#connected$.next([...this.#nodes.values()].some(({ pool }) => pool.isConnected));
  }
}

/** The indices of the operations that are still to be sent, by where they go. */
function stillToSend(outcomes: readonly Outcome[]): ReadonlyMap<Route, readonly number[]> {
  const groups = new Map<Route, number[]>();
  for (const [index, outcome] of outcomes.entries()) {
    if (typeof outcome === 'number' || outcome instanceof Error) continue;
    const group = groups.get(outcome);
    if (group === undefined) groups.set(outcome, [index]);
    else group.push(index);
  }
  return groups;
}
