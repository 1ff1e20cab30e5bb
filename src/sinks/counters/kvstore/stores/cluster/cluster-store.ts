import { BehaviorSubject, Subject, distinctUntilChanged } from 'rxjs';
import type { Count, CounterOperation } from '../../../../../limiter/counter-operation';
import type { DecisionError } from '../../../../../limiter/decision-error';
import { type Server, nameOf } from '../../connections/address';
import { Answers } from '../answers';
import type { Connection } from '../../connections/connection';
import { Deadline } from '../../connections/deadline';
import { type Step, decideGuards, readsOf } from '../../counting/guards';
import { type StoreContext, openConnection } from '../store-context';
import { areCounts } from '../../counting/outcome';
import { StateLog } from '../../connections/state-log';
import type { Store } from '../store';
import { isReply, replyCode, slotUnheld, storeError, timedOut } from '../../connections/store-error';
import { mapConcurrent } from './map-concurrent';
import { keySlot } from './key-slot';
import { Node } from './node';
import { readRedirect } from './slots';
import { Topology } from './topology';

/** How often a step is sent elsewhere because its slot has moved, at the most. */
const MAX_REDIRECTS = 5;

/** A step on its way, and where it goes when not to the owner of its slot. */
interface Pending {
  readonly index: number;
  readonly slot: number;
  readonly ask: Server | undefined;
}

/** What goes to one node in one write. */
interface Shipment {
  readonly node: Node;
  readonly isAsking: boolean;
  readonly pending: Pending[];
}

/** Counters on the masters of a cluster: each key by itself where its slot is, what goes to one node in one write. */
export class ClusterStore implements Store {
  readonly #context: StoreContext;
  readonly failures$ = new Subject<Error>();
  readonly #connected$ = new BehaviorSubject(false);
  readonly connected$ = this.#connected$.pipe(distinctUntilChanged());
  readonly #nodes = new Map<string, Node>();
  readonly #topology: Topology;
  readonly #answers: Answers;
  readonly #width: number;

  constructor(seeds: readonly Server[], context: StoreContext) {
    this.#context = context;
    const { instance, log, name, backoff } = context;
    const { clusterPipelineParallelism: parallelism, poolSize, timeout } = instance;
    this.#width = parallelism === 0 ? poolSize : Math.min(parallelism, poolSize);
    this.#topology = new Topology({ seeds, connect: (server) => openConnection(server, context), timeout, backoff });
    this.#answers = new Answers(context, () => this.#topology.refresh());
    const state = new StateLog(
      log,
      {
        bad: 'no node of the cluster tells where counters are; trying until one does',
        good: 'the cluster tells again where counters are',
      },
      { store: name },
    );
    this.#topology.masters$.subscribe((masters) => {
      state.good();
      this.#follow(masters);
    });
    this.#topology.failures$.subscribe((error) => {
      state.bad(error.message);
      this.failures$.next(error);
    });
  }

  async run(batch: readonly CounterOperation[]): Promise<readonly Count[]> {
    const deadline = new Deadline(this.#context.instance.timeout);
    try {
      if (!batch.some(({ guard }) => guard !== undefined)) return await this.#take(batch, deadline);
      // No step over keys of different slots is atomic: look, then count.
      const stored = await this.#take(readsOf(batch), deadline);
      return await this.#take(decideGuards(batch, stored), deadline);
    } finally {
      deadline.end();
    }
  }

  close(): void {
    this.#topology.close();
    for (const { pool } of this.#nodes.values()) pool.close();
    this.#connected$.complete();
  }

  async #take(steps: readonly Step[], deadline: Deadline): Promise<readonly Count[]> {
    const counts: Count[] = Array.from({ length: steps.length });
    let pending: Pending[] = steps.map(({ key }, index) => ({ index, slot: keySlot(key), ask: undefined }));
    for (let hops = 0; pending.length > 0; hops += 1) {
      const redirected: Pending[] = [];
      const mayRedirect = hops < MAX_REDIRECTS;
      await mapConcurrent(this.#shipments(pending, counts), this.#width, (shipment) =>
        this.#ship(shipment, steps, deadline, counts, mayRedirect ? redirected : undefined),
      );
      pending = redirected.toSorted((one, other) => one.index - other.index);
    }
    return counts;
  }

  /** @param redirected takes the steps whose slots have moved; undefined: they have done so often enough */
  async #ship(
    { node, isAsking, pending }: Shipment,
    steps: readonly Step[],
    deadline: Deadline,
    counts: Count[],
    redirected: Pending[] | undefined,
  ): Promise<void> {
    let answer;
    try {
      if (deadline.hasPassed) throw timedOut();
      const group = { steps: pending.map(({ index }) => steps[index] as Step), isAsking };
      answer = await node.take(group, deadline, (connection, error) => this.#answers.scriptsRefused(connection, error));
    } catch (error) {
      this.#topology.refresh();
      const failure = deadline.hasPassed ? timedOut() : storeError(error);
      for (const { index } of pending) counts[index] = failure;
      return;
    }
    const { outcomes, connection } = answer;
    if (areCounts(outcomes)) this.#answers.good();
    outcomes.forEach((outcome, place) => {
      const at = pending[place] as Pending;
      if (typeof outcome === 'number') {
        counts[at.index] = outcome;
        return;
      }
      const elsewhere = redirected && this.#redirect(outcome, node, at);
      if (elsewhere === undefined) counts[at.index] = this.#failure(outcome, connection, deadline);
      else redirected?.push(elsewhere);
    });
  }

  /** Where the step has to go instead; the node that says so has not counted it. */
  #redirect(error: Error, node: Node, { index, slot }: Pending): Pending | undefined {
    const redirect = isReply(error) ? readRedirect(error, node.host) : undefined;
    if (redirect === undefined) return undefined;
    if (redirect.kind === 'ASK') return { index, slot, ask: redirect.server };
    this.#topology.moved(slot, redirect.server);
    return { index, slot, ask: undefined };
  }

  #failure(error: Error, connection: Connection, deadline: Deadline): DecisionError {
    if (isReply(error)) {
      if (replyCode(error) === 'CLUSTERDOWN') this.#topology.refresh();
      return this.#answers.error(error, connection);
    }
    this.#topology.refresh();
    return deadline.hasPassed ? timedOut() : storeError(error);
  }

  /** By node. What nobody holds fails here. */
  #shipments(pending: readonly Pending[], counts: Count[]): readonly Shipment[] {
    const shipments = new Map<string, Shipment>();
    for (const each of pending) {
      const server = each.ask ?? this.#topology.ownerOf(each.slot);
      if (server === undefined) {
        this.#topology.refresh();
        counts[each.index] = slotUnheld();
        continue;
      }
      const isAsking = each.ask !== undefined;
      const name = `${nameOf(server)}${isAsking ? ' asking' : ''}`;
      const shipment = shipments.get(name);
      if (shipment === undefined) shipments.set(name, { node: this.#nodeAt(server), isAsking, pending: [each] });
      else shipment.pending.push(each);
    }
    // A node that has stopped answering has many windows under way: the others do not wait behind it.
    return [...shipments.values()].toSorted((one, other) => one.node.pool.underWay - other.node.pool.underWay);
  }

  #nodeAt(server: Server): Node {
    const name = nameOf(server);
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const node = new Node(server, this.#context);
    this.#nodes.set(name, node);
    node.pool.connected$.subscribe(() => this.#connected$.next(this.#isAnyConnected()));
    node.pool.failures$.subscribe((error) => {
      // It may have gone for good, and another taken its slots.
      this.#topology.refresh();
      this.failures$.next(error);
    });
    return node;
  }

  #follow(masters: ReadonlyMap<string, Server>): void {
    for (const [name, node] of this.#nodes) {
      if (masters.has(name)) continue;
      this.#nodes.delete(name);
      node.pool.drain();
    }
    for (const server of masters.values()) this.#nodeAt(server);
    this.#connected$.next(this.#isAnyConnected());
  }

  #isAnyConnected(): boolean {
    return [...this.#nodes.values()].some(({ pool }) => pool.connected$.value);
  }
}
