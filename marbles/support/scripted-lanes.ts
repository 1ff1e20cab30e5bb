import { NEVER, type Observable, of, take } from 'rxjs';
import type { Counted, Operation, Result } from '../../src/counting/operation';
import type { Deadline } from '../../src/streams/deadline';
import type { ServerState } from '../../src/streams/server-state';
import type { CounterInstance, CounterLane, Counters, LanePipeline } from '../../src/streams/ports/counters';

export type Reply = (batch: readonly Operation[]) => Observable<readonly Result[]>;

export interface LaneOptions extends Partial<LanePipeline> {
  readonly instance?: CounterInstance;
  readonly retired$?: Observable<unknown>;
}

/**
 * A server that replies as the scenario says, and records each batch as `value+hits`, its operations separated by
 * blanks.
 */
export class ScriptedLane implements CounterLane {
  readonly sent: string[] = [];
  readonly pipeline: LanePipeline;
  readonly instance: CounterInstance;
  readonly retired$: Observable<unknown>;
  server: ServerState | undefined;
  readonly #reply: Reply;

  constructor(reply: Reply, { instance = { lanesAtOnce: 1 }, retired$ = NEVER, ...pipeline }: LaneOptions = {}) {
    this.#reply = reply;
    this.pipeline = { span: 3, windowsInFlight: 1, whenFull: undefined, ...pipeline };
    this.instance = instance;
    this.retired$ = retired$;
  }

  apply(batch: readonly Operation[], _deadline: Deadline): PromiseLike<readonly Result[]> {
    this.sent.push(batch.map(({ key, hits }) => `${key.split('_')[2] ?? key}${hits < 0 ? '' : '+'}${hits}`).join(' '));
    return inVirtualTime(this.#reply(batch));
  }
}

/**
 * The first value of a stream, or its error, for what calls `then` once: a Promise would settle outside virtual time.
 */
export function inVirtualTime<T>(value$: Observable<T>): PromiseLike<T> {
  function then(next: (value: T) => unknown, failed: (error: unknown) => unknown): void {
    value$.pipe(take(1)).subscribe({ next, error: failed });
  }
  return { then } as PromiseLike<T>;
}

/** A server in which every key is new. */
export function freshCounts(batch: readonly Operation[]): readonly number[] {
  return batch.map(({ hits }) => hits);
}

/** A store of the given lanes, whose operations go where `laneOf` says. */
export function storeOf(laneOf: (counter: Counted) => CounterLane): Counters {
  return { laneOf, connected$: of(true), close: () => Promise.resolve() };
}
