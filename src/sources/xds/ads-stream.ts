import {
  type Observable,
  type SchedulerLike,
  Subject,
  concat,
  connect,
  defer,
  endWith,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  of,
  startWith,
  switchMap,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { DiscoveryRequest } from '../../gen/envoy/service/discovery/v3/discovery';
import { type Backoff, backoff } from '../../streams/backoff';
import type { RuleEvent } from '../../streams/ports/rule-source';
import { exhaustMapWithTrailing } from '../../streams/exhaust-map-with-trailing';
import type { AdsResponse, ConnectAds } from './connect-ads';
import type { HandledResponse, SotwState } from './sotw-state';

/**
 * What happened on a stream: `stable`, its connection has lasted for {@link STABLE_AFTER}; `handled`, a response was
 * accepted or rejected.
 */
export type AdsProgress = 'connected' | 'stable' | 'handled';

/** Milliseconds after which a connection counts as working even if the server has sent nothing. */
export const STABLE_AFTER = 30_000;

/**
 * The pause after a response has been handled, by the number of consecutive ones that arrived during the pause before:
 * a server that sends without pause gets one load, and one log line, a second.
 */
export const SETTLE = backoff({ initial: 100, max: 1000 });
/**
 * The pause is also at least this many times as long as handling took, so that loading large rules takes a fifth of a
 * core at most.
 */
const PAUSE_PER_LOAD = 4;
/** Milliseconds; the longest pause for that reason. */
const LONGEST_PAUSE = 10_000;

export interface AdsStreamOptions {
  readonly settle: Backoff;
  readonly scheduler: SchedulerLike;
  readonly onProgress: (progress: AdsProgress) => void;
}

/**
 * One stream: requests the rules, and answers each response when its rules are active or rejected. Of the responses
 * that arrive while another one is handled, or in the pause after it, only the newest is kept, and the others are not
 * even decoded: each contains all rules, and the server waits for the answer to the newest one only.
 *
 * Emits what each response brings that is new. Completes when the server ends the stream, after the response in
 * progress has been handled. Fails with an `AdsStreamError`, which drops that response. Unsubscribing closes the
 * stream.
 */
export function adsStream(
  open: ConnectAds,
  state: SotwState,
  { settle, scheduler, onProgress }: AdsStreamOptions,
): Observable<RuleEvent> {
  return defer(() => {
    const replies$ = new Subject<DiscoveryRequest>();
    return open(replies$.pipe(startWith(state.begin()))).pipe(
      connect((events$) => {
        const end$ = events$.pipe(ignoreElements(), endWith(undefined));
        const responses$ = events$.pipe(filter((event): event is AdsResponse => event.kind === 'response'));
        /** Sends the reply after its delay, unless a newer response has made its nonce obsolete. */
        function send({ reply, delay }: HandledResponse): Observable<never> {
          return (delay === 0 ? of(0) : timer(delay, scheduler)).pipe(
            takeUntil(merge(responses$, end$)),
            tap(() => replies$.next(reply)),
            ignoreElements(),
          );
        }
        /** The responses since the last one that was handled. */
        let arrived = 0;
        /** How many in a row were waiting when the pause before ended, plus 1. */
        let hurried = 1;
        function handle({ message }: AdsResponse): Observable<HandledResponse> {
          const skipped = arrived - 1;
          arrived = 0;
          const start = scheduler.now();
          const pause$ = defer(() => {
            const pause = Math.min(PAUSE_PER_LOAD * (scheduler.now() - start), LONGEST_PAUSE);
            return timer(Math.max(settle(hurried), pause), scheduler).pipe(takeUntil(end$), ignoreElements());
          });
          const handled$ = state.handle(message).pipe(
            map(({ event, ...handled }) => ({
              ...handled,
              event: event && skipped > 0 ? { ...event, skipped } : event,
            })),
          );
          return concat(handled$, pause$).pipe(tap({ complete: () => (hurried = arrived > 0 ? hurried + 1 : 1) }));
        }
        const connection$ = events$.pipe(
          filter(({ kind }) => kind === 'connected'),
          tap(() => onProgress('connected')),
          switchMap(() => timer(STABLE_AFTER, scheduler)),
          takeUntil(end$),
          tap(() => onProgress('stable')),
          ignoreElements(),
        );
        const rules$ = responses$.pipe(
          tap(() => (arrived += 1)),
          exhaustMapWithTrailing(handle),
          tap(() => onProgress('handled')),
          mergeMap((handled) => concat(handled.event === undefined ? [] : [handled.event], send(handled))),
        );
        return merge(connection$, rules$);
      }),
    );
  });
}
