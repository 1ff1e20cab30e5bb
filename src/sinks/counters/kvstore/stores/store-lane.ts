import { NEVER, Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../../../limiter/counter-operation';
import type { CounterInstance, CounterLane, LanePipeline } from '../../../../streams/ports/counters';
import type { InstanceOptions } from '../connections/options';
import { storeError } from '../connections/store-error';

/** Applies a batch, with the results of {@link CounterLane.apply}; rejects when the batch fails as a whole. */
export type ApplyBatch = (batch: readonly CounterOperation[]) => Promise<readonly Count[]>;

/** The batches that the lanes of a store have in flight. */
export type BatchesInFlight = Set<Promise<void>>;

export interface StoreLaneOptions {
  readonly pipeline: LanePipeline;
  readonly instance: CounterInstance;
  readonly inFlight: BatchesInFlight;
  readonly retired$?: Observable<unknown>;
}

/** The lane of one server. */
export class StoreLane implements CounterLane {
  readonly pipeline: LanePipeline;
  readonly instance: CounterInstance;
  readonly retired$: Observable<unknown>;
  readonly #inFlight: BatchesInFlight;
  readonly #apply: ApplyBatch;

  constructor(apply: ApplyBatch, { pipeline, instance, inFlight, retired$ = NEVER }: StoreLaneOptions) {
    this.#apply = apply;
    this.pipeline = pipeline;
    this.instance = instance;
    this.#inFlight = inFlight;
    this.retired$ = retired$;
  }

  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]> {
    return new Observable((subscriber) => {
      const done = this.#apply(batch).then(
        (counts) => {
          this.#inFlight.delete(done);
          subscriber.next(counts);
          subscriber.complete();
        },
        (error: unknown) => {
          this.#inFlight.delete(done);
          subscriber.error(storeError(error));
        },
      );
      this.#inFlight.add(done);
    });
  }
}

/** The pipeline windows of a server: one per connection of its pool. */
export function pipelineOf(options: InstanceOptions): LanePipeline {
  const { pipelineWindow, poolSize, poolOnEmptyBehavior: behavior, poolOnEmptyWaitDuration: after } = options;
  return {
    span: pipelineWindow,
    windowsInFlight: poolSize,
    whenFull: behavior === 'WAIT' ? undefined : { behavior: behavior === 'CREATE' ? 'exceed' : 'fail', after },
  };
}
