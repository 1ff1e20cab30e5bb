import { BehaviorSubject, NEVER, type Observable, Subject, Subscription, distinctUntilChanged, merge, tap } from 'rxjs';
import type { Count, CounterOperation } from '../../../../../limiter/counter-operation';
import type { DecisionError } from '../../../../../limiter/decision-error';
import type { CounterInstance, CounterLane } from '../../../../../streams/ports/counters';
import { type Server, nameOf } from '../../../server-address';
import type { Connection } from '../../connections/connection';
import { Deadline } from '../../connections/deadline';
import { ConditionLog } from '../../../../../streams/condition-log';
import { isReply, replyCode, slotUnassigned, storeError, timedOut } from '../../connections/store-error';
import { type Step, decideGuards, readsOf } from '../../../guarded-batch';
import { type StepResult, areCounts } from '../../counting/step-result';
import { ReplyHandler } from '../reply-handler';
import type { SendCommand, Store } from '../store';
import { StoreLane, pipelineOf } from '../store-lane';
import { type StoreContext, endStartup, logConnections, openConnection } from '../store-context';
import { ClusterNode, type NodeReply } from './cluster-node';
import { keySlot } from './key-slot';
import { readRedirect } from './slots';
import { Topology } from './topology';

/** How often a step is redirected at most. */
const MAX_REDIRECTS = 5;

/** A step of a window, by its index, and the node it goes to. */
interface RoutedStep {
  readonly index: number;
  readonly slot: number;
  /** The node that imports the slot (ASK redirect); undefined: the owner of the slot. */
  readonly importer: Server | undefined;
}

/** The steps that go to one node in one write. */
interface NodeSteps {
  readonly node: ClusterNode;
  readonly isAsking: boolean;
  readonly routed: RoutedStep[];
}

/** One round of a window: every step is sent to its node once. Steps that are redirected go into the next round. */
interface Round {
  readonly steps: readonly Step[];
  readonly deadline: Deadline;
  /** The counts of the window so far, by the index of the step. */
  readonly counts: Count[];
  readonly redirected: RoutedStep[];
  /** Redirects count as failures. */
  readonly isLast: boolean;
}

/** Counters on the masters of a cluster: each key on the node that holds its slot, all steps of one node in one write. */
export class ClusterStore implements Store {
  readonly #context: StoreContext;
  readonly #failures$ = new Subject<Error>();
  readonly #connected$ = new BehaviorSubject(false);
  readonly failures$ = this.#failures$.asObservable();
  readonly connected$ = this.#connected$.pipe(distinctUntilChanged());
  readonly #nodes = new Map<string, ClusterNode>();
  /** Saves the decision path the name of the server. */
  readonly #nodeByServer = new WeakMap<Server, ClusterNode>();
  readonly #topology: Topology;
  readonly #replies: ReplyHandler;
  /** How many nodes work for one decision at a time. */
  readonly #instance: CounterInstance;
  /** For keys whose slot no node holds: their operations fail. */
  readonly #unassigned: CounterLane;
  readonly #subscription = new Subscription();

  constructor(seeds: readonly Server[], context: StoreContext) {
    this.#context = context;
    const { clusterPipelineParallelism: parallelism, poolSize, timeout } = context.instance;
    this.#instance = { lanesAtOnce: parallelism === 0 ? poolSize : Math.min(parallelism, poolSize) };
    this.#unassigned = this.#lane(NEVER);
    this.#topology = new Topology({
      seeds,
      connect: (server) => openConnection(server, context),
      timeout,
      retryDelay: context.startupDelay.next,
    });
    this.#replies = new ReplyHandler(context, () => this.#topology.refresh());
    this.#subscription.add(merge(this.#followTopology(), endStartup(this.connected$, context)).subscribe());
  }

  laneOf({ key }: CounterOperation): CounterLane {
    const server = this.#topology.ownerOf(keySlot(key));
    if (server === undefined) return this.#unassigned;
    return (this.#nodeByServer.get(server) ?? this.#nodeAt(server)).lane;
  }

  /** The steps of a batch go to the node of their lane, unless their slots have moved since. */
  async #apply(batch: readonly CounterOperation[]): Promise<readonly Count[]> {
    const deadline = new Deadline(this.#context.instance.timeout);
    try {
      if (!batch.some(({ guard }) => guard !== undefined)) return await this.#applySteps(batch, deadline);
      // No step over keys of different slots is atomic: read first, then count.
      const stored = await this.#applySteps(readsOf(batch), deadline);
      return await this.#applySteps(decideGuards(batch, stored), deadline);
    } finally {
      deadline.end();
    }
  }

  async run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    const deadline = new Deadline(this.#context.instance.timeout);
    const slot = keySlot(key);
    let importer: Server | undefined;
    try {
      for (let redirects = 0; ; redirects += 1) {
        const server = importer ?? this.#topology.ownerOf(slot);
        if (server === undefined) throw slotUnassigned();
        const node = this.#nodeAt(server);
        const outcome = await node.run(commands, importer !== undefined, deadline);
        if ('value' in outcome) return outcome.value;
        const step = { index: 0, slot, importer };
        const redirected = redirects < MAX_REDIRECTS ? this.#redirect(outcome.error, node, step) : undefined;
        if (redirected === undefined) throw this.#failure(outcome.error, outcome.connection, deadline);
        importer = redirected.importer;
      }
    } catch (error) {
      this.#topology.refresh();
      throw deadline.hasPassed ? timedOut() : storeError(error);
    } finally {
      deadline.end();
    }
  }

  close(): void {
    this.#topology.close();
    for (const { pool } of this.#nodes.values()) pool.close();
    this.#connected$.complete();
    this.#subscription.unsubscribe();
  }

  async #applySteps(steps: readonly Step[], deadline: Deadline): Promise<readonly Count[]> {
    const counts: Count[] = Array.from({ length: steps.length });
    let routed: RoutedStep[] = steps.map(({ key }, index) => ({ index, slot: keySlot(key), importer: undefined }));
    for (let redirects = 0; routed.length > 0; redirects += 1) {
      const redirected: RoutedStep[] = [];
      const round = { steps, deadline, counts, redirected, isLast: redirects === MAX_REDIRECTS };
      await Promise.all(this.#byNode(routed, counts).map((nodeSteps) => this.#send(nodeSteps, round)));
      routed = redirected.toSorted((one, other) => one.index - other.index);
    }
    return counts;
  }

  /** Groups steps by node. Steps whose slot no node holds fail here. */
  #byNode(steps: readonly RoutedStep[], counts: Count[]): readonly NodeSteps[] {
    const groups = new Map<string, NodeSteps>();
    for (const step of steps) {
      const server = step.importer ?? this.#topology.ownerOf(step.slot);
      if (server === undefined) {
        this.#topology.refresh();
        counts[step.index] = slotUnassigned();
        continue;
      }
      const isAsking = step.importer !== undefined;
      const name = `${nameOf(server)}${isAsking ? ' asking' : ''}`;
      const group = groups.get(name);
      if (group === undefined) groups.set(name, { node: this.#nodeAt(server), isAsking, routed: [step] });
      else group.routed.push(step);
    }
    return [...groups.values()];
  }

  /** Sends steps to their node, and puts each into the counts or among the redirected steps of the round. */
  async #send({ node, isAsking, routed }: NodeSteps, round: Round): Promise<void> {
    const { steps, deadline, counts } = round;
    let reply: NodeReply;
    try {
      if (deadline.hasPassed) throw timedOut();
      reply = await node.apply({ steps: routed.map(({ index }) => steps[index] as Step), isAsking }, deadline);
    } catch (error) {
      this.#topology.refresh();
      const failure = deadline.hasPassed ? timedOut() : storeError(error);
      for (const { index } of routed) counts[index] = failure;
      return;
    }
    const { results, connection } = reply;
    if (areCounts(results)) this.#replies.succeeded();
    for (const [position, step] of routed.entries()) {
      const result = results[position] as StepResult;
      if (typeof result === 'number') {
        counts[step.index] = result;
        continue;
      }
      const redirected = round.isLast ? undefined : this.#redirect(result, node, step);
      if (redirected === undefined) counts[step.index] = this.#failure(result, connection, deadline);
      else round.redirected.push(redirected);
    }
  }

  /** The step routed as a MOVED or ASK error says, undefined for other errors. The node has not counted the step. */
  #redirect(error: Error, node: ClusterNode, { index, slot }: RoutedStep): RoutedStep | undefined {
    const redirect = isReply(error) ? readRedirect(error, node.host) : undefined;
    if (redirect === undefined) return undefined;
    if (redirect.kind === 'ASK') return { index, slot, importer: redirect.server };
    this.#topology.moved(slot, redirect.server);
    return { index, slot, importer: undefined };
  }

  #failure(error: Error, connection: Connection, deadline: Deadline): DecisionError {
    if (isReply(error)) {
      if (replyCode(error) === 'CLUSTERDOWN') this.#topology.refresh();
      return this.#replies.failed(error, connection);
    }
    this.#topology.refresh();
    return deadline.hasPassed ? timedOut() : storeError(error);
  }

  #nodeAt(server: Server): ClusterNode {
    const name = nameOf(server);
    const known = this.#nodes.get(name);
    if (known !== undefined) {
      this.#nodeByServer.set(server, known);
      return known;
    }
    const node = new ClusterNode(server, this.#context, {
      lane: (retired$) => this.#lane(retired$),
      onScriptsRejected: (connection, error) => this.#replies.scriptsRejected(connection, error),
    });
    this.#nodes.set(name, node);
    this.#nodeByServer.set(server, node);
    // Completes, and so leaves the subscription, when the pool is closed.
    this.#subscription.add(this.#followNode(node).subscribe());
    return node;
  }

  #followTopology(): Observable<unknown> {
    const unknown = new ConditionLog(this.#context.log, {
      begins: 'cannot read the cluster topology; retrying',
      ends: 'the cluster topology is known again',
      fields: { store: this.#context.name },
    });
    return merge(
      this.#topology.masters$.pipe(
        tap((masters) => {
          unknown.ended();
          this.#updateNodes(masters);
        }),
      ),
      this.#topology.failures$.pipe(
        tap((error) => {
          unknown.because(error.message);
          this.#failures$.next(error);
        }),
      ),
    );
  }

  #followNode(node: ClusterNode): Observable<unknown> {
    return merge(
      logConnections(node.pool, this.#context, node.name),
      node.pool.connected$.pipe(tap(() => this.#connected$.next(this.#isAnyConnected()))),
      node.pool.failures$.pipe(
        tap((error) => {
          // The node may have failed and its slots moved to another.
          this.#topology.refresh();
          this.#failures$.next(error);
        }),
      ),
    );
  }

  /** Drains the pools of nodes that hold no slots any more, and connects to new ones. */
  #updateNodes(masters: ReadonlyMap<string, Server>): void {
    for (const [name, node] of this.#nodes) {
      if (masters.has(name)) continue;
      this.#nodes.delete(name);
      node.retire();
    }
    for (const server of masters.values()) this.#nodeAt(server);
    this.#connected$.next(this.#isAnyConnected());
  }

  #lane(retired$: Observable<unknown>): CounterLane {
    const { instance, inFlight } = this.#context;
    return new StoreLane((batch) => this.#apply(batch), {
      pipeline: pipelineOf(instance),
      instance: this.#instance,
      inFlight,
      retired$,
    });
  }

  #isAnyConnected(): boolean {
    return [...this.#nodes.values()].some(({ pool }) => pool.isConnected);
  }
}
