import type { Observable } from 'rxjs';
import type { Counted, Operation, Result } from '../../counting/operation';
import type { Deadline } from '../deadline';
import type { ServerState } from '../server-state';

/**
 * A counter store. Its servers are lanes, which neither wait for each other nor fail together: a slow server slows the
 * counters that it holds, and no others.
 */
export interface Counters {
  /**
   * The lane that counts an operation at present. Operations on one key share a lane until the key moves to another
   * server.
   *
   * @throws DecisionError `invalid_request` for a key that the store does not allow: nothing of its call is sent
   */
  laneOf(counter: Counted): CounterLane;
  /**
   * Present if the counts are in this process, where nothing is gained by gathering operations: applies those of one
   * call as {@link CounterLane.apply} does, and writes the count after each into its `countAfter`, before it returns.
   */
  readonly countNow?: ((operations: readonly Operation[]) => void) | undefined;
  /** Whether the store can be reached: the present state on subscribing, then every change. */
  readonly connected$: Observable<boolean>;
  /** Waits for batches in flight, then releases connections and timers. */
  close(): Promise<void>;
}

/** One server of a counter store. */
export interface CounterLane {
  readonly pipeline: LanePipeline;
  /** What is known of the server; undefined: it is in this process, or there is none. */
  readonly server?: ServerState | undefined;
  /**
   * Whether the lane tells `server` what becomes of its requests, and answers calls itself while they are held back.
   */
  readonly feedsServer?: boolean;
  readonly instance: CounterInstance;
  /** Emits when the server has left the store; {@link Counters.laneOf} does not return the lane any more. */
  readonly retired$: Observable<unknown>;
  /**
   * Sends a batch. Its operations take effect in order; operations on the same key as if they were sent one by one.
   * Resolves with the count after each operation, in the order of the batch; or rejects as a whole with a
   * `DecisionError`. A failed batch may have been counted once, never twice: implementations do not retry what the
   * store may have applied. Only `then` of the result is used, which may call back before it returns, so that lanes in
   * virtual time need no Promise.
   *
   * @param deadline after which nothing more of the batch is sent
   */
  apply(batch: readonly Operation[], deadline: Deadline): PromiseLike<readonly Result[]>;
}

/** How the operations for a lane are gathered and how many batches it takes. */
export interface LanePipeline {
  /** How long a pipeline window gathers, in milliseconds: KVSTORE_PIPELINE_WINDOW. */
  readonly span: number;
  /** How many windows may be in flight at once: KVSTORE_POOL_SIZE. */
  readonly windowsInFlight: number;
  /** What happens to a window while as many are in flight; undefined: it waits until one is done. */
  readonly whenFull: WhenFull | undefined;
}

/** KVSTORE_POOL_ON_EMPTY_BEHAVIOR and _WAIT_DURATION. */
export interface WhenFull {
  /** `exceed`: the window is sent over the bound; `fail`: its calls fail with `store_pool_empty`. */
  readonly behavior: 'exceed' | 'fail';
  /** Milliseconds that the window waits first. */
  readonly after: number;
}

/** What the lanes of one cluster have in common; a lane of its own has an instance of its own. Compared by identity. */
export interface CounterInstance {
  /** How many of the lanes work for one decision at a time: KVSTORE_CLUSTER_PIPELINE_PARALLELISM. */
  readonly lanesAtOnce: number;
}
