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
import type { RuleEvent } from '../../streams/ports/rule-source';
import { exhaustMapWithTrailing } from '../watching/exhaust-map-with-trailing';
import { type AdsResponse, AdsStreamError, type ConnectAds } from './ads';
import type { SotwState } from './sotw-state';
import { messageOf } from '../../text/thrown';
import { type ReadResponse, readResponse } from './read-response';

/** What a talk with the server comes to. */
export type TalkEvent =
  | { readonly kind: 'connected' }
  /** The connection has stood for some time, silent or not. */
  | { readonly kind: 'lasted' }
  /** A response was dealt with; `event` when it says something new. */
  | { readonly kind: 'handled'; readonly event: RuleEvent | undefined };

/** A connection that stands this long, in milliseconds, is a good one, even if the server had nothing to say. */
export const LASTING = 30_000;

/**
 * One stream: asks for the rules, and answers each response when its rules are in force or refused. While one is dealt with only
 * the newest of those that come meanwhile is kept: it holds all rules, and the server waits for the answer to it alone.
 *
 * Ends as the stream does; fails with an {@link AdsStreamError}.
 */
export function adsStream(open: ConnectAds, agreement: SotwState, scheduler: SchedulerLike): Observable<TalkEvent> {
  return defer(() => {
    const replies$ = new Subject<DiscoveryRequest>();
    return open(replies$.pipe(startWith(agreement.begin()))).pipe(
      connect((events$) => {
        const end$ = events$.pipe(ignoreElements(), endWith(undefined));
        const connected$ = events$.pipe(filter(({ kind }) => kind === 'connected'));
        const responses$ = events$.pipe(filter((event): event is AdsResponse => event.kind === 'response'));
        return merge(
          connected$.pipe(map((): TalkEvent => ({ kind: 'connected' }))),
          connected$.pipe(
            switchMap(() => timer(LASTING, scheduler)),
            takeUntil(end$),
            map((): TalkEvent => ({ kind: 'lasted' })),
          ),
          responses$.pipe(
            map(({ message }) => decoded(message)),
            exhaustMapWithTrailing((response) => agreement.judge(response)),
            mergeMap(({ event, reply, delay }) => {
              const reply$ = (delay === 0 ? of(0) : timer(delay, scheduler)).pipe(
                // A newer response makes the nonce of this answer a stale one.
                takeUntil(merge(responses$, end$)),
                tap(() => replies$.next(reply)),
                ignoreElements(),
              );
              return concat(of<TalkEvent>({ kind: 'handled', event }), reply$);
            }),
          ),
        );
      }),
    );
  });
}

function decoded(message: Uint8Array): ReadResponse {
  try {
    return readResponse(message);
  } catch (error) {
    const reason = messageOf(error);
    throw new AdsStreamError(`a response cannot be decoded: ${reason}`, true);
  }
}
