import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { NEVER, type Observable, asyncScheduler, startWith, switchMap } from 'rxjs';
import { DecisionError, type DecisionErrorCode } from '../../limiter/decision-error';
import type { OffenderSummary } from '../../limiter/offenders/offender';
import type { RateLimitRequest } from '../../limiter/request';
import type { CounterChange, CounterQuery, CounterState, Explanation, NoCounter } from '../../streams/ports/operator';
import { ChannelClosedError, RequestError } from '../../workers/channel/requests/request-error';
import type { Requests } from '../../workers/channel/requests/requests';
import { patientTimer } from '../../workers/primary/patient-timer';

/** The methods that a worker answers, with the type of their JSON: parameters, result. */
export interface WorkerMethods {
  readonly explain: [{ readonly request: RateLimitRequest }, Explanation];
  readonly read_counter: [{ readonly query: CounterQuery }, CounterState | NoCounter];
  readonly change_counter: [{ readonly query: CounterQuery; readonly count: number | null }, CounterChange | NoCounter];
  /** Removes a key from the local cache. */
  readonly forget: [{ readonly cacheKey: string }, Record<string, never>];
  readonly offenders: [Record<string, never>, OffenderSummary];
}

/** What a failed request carries besides its message, if it failed with a `DecisionError`. */
export interface DecisionErrorDetail {
  readonly code: DecisionErrorCode;
}

/** A worker that runs, and how to ask it. */
export interface AskedWorker {
  readonly requests: Pick<Requests, 'ask'>;
  /** Whether it decides calls and has answered the primary lately. */
  readonly isReady: boolean;
  /** Emits at every sign of life: about once a second, unless the worker stands still. */
  readonly alive$: Observable<unknown>;
}

export interface WorkerRequest<M extends keyof WorkerMethods> {
  readonly method: M;
  readonly parameters: WorkerMethods[M][0];
  /**
   * Milliseconds without a sign of life for which the result is waited for; undefined: as long as the worker runs. Work that takes long,
   * such as waiting for a store, does not count: how long that may take is limited there.
   */
  readonly patience: number | undefined;
}

/**
 * Asks a worker. What it has received it carries out, also when the result is no longer waited for.
 *
 * @returns the result, or nothing if the worker ends before it has answered, or stands still
 * @throws DecisionError
 */
export async function askWorker<M extends keyof WorkerMethods>(
  { requests, alive$ }: AskedWorker,
  { method, parameters, patience }: WorkerRequest<M>,
): Promise<readonly [WorkerMethods[M][1]] | readonly []> {
  const answer = requests.ask(method, parameters);
  const stoppedAt$ = patience === undefined ? NEVER : silenceOf(alive$, patience);
  const waiting = stoppedAt$.subscribe(() => answer.destroy(new SilentWorkerError()));
  try {
    return [await resultOf<WorkerMethods[M][1]>(answer)];
  } catch (error) {
    if (error instanceof ChannelClosedError || error instanceof SilentWorkerError) return [];
    throw error;
  } finally {
    waiting.unsubscribe();
  }
}

class SilentWorkerError extends Error {
  override readonly name = 'SilentWorkerError';
}

/** Emits when there has been no sign of life for a time in milliseconds. */
function silenceOf(alive$: Observable<unknown>, time: number): Observable<unknown> {
  return alive$.pipe(
    startWith(undefined),
    switchMap(() => patientTimer(time, asyncScheduler)),
  );
}

async function resultOf<Result>(answer: Readable): Promise<Result> {
  try {
    return JSON.parse(await text(answer)) as Result;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const detail = error.detail as DecisionErrorDetail | undefined;
    throw detail === undefined ? error : new DecisionError(detail.code, error.message);
  }
}
