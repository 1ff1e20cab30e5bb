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
import type { DiscoveryRequest } from '../../../gen/envoy/service/discovery/v3/discovery';
import type { RuleEvent } from '../../../streams/ports/rule-source';
import { messageOf } from '../../../text/thrown';
import { exhaustMapWithTrailing } from '../../../streams/exhaust-map-with-trailing';
import { type AdsEvent, type AdsResponse, AdsStreamError, type ConnectAds } from '../ads';
import { type ReceivedResponse, readResponse } from './read-response';
import type { HandledResponse, SotwState } from './sotw-state';

/** What happened on a stream. */
export type AdsStreamEvent =
  | { readonly kind: 'connected' }
  /** The connection has lasted for {@link STABLE_AFTER}, with or without a response. */
  | { readonly kind: 'stable' }
  /** A response was accepted or rejected; `event` is undefined when it brings nothing new. */
  | { readonly kind: 'handled'; readonly event: RuleEvent | undefined };

/** Milliseconds after which a connection counts as working even if the server has sent nothing. */
export const STABLE_AFTER = 30_000;

/**
 * One stream: requests the rules, and answers each response when its rules are active or rejected. Of the responses that arrive
 * while another one is handled only the newest is kept: each contains all rules, and the server waits for the answer to the
 * newest one only.
 *
 * Completes when the server ends the stream, after the response in progress has been handled. Fails with an
 * {@link AdsStreamError}, which drops that response. Unsubscribing closes the stream.
 */
export function adsStream(open: ConnectAds, state: SotwState, scheduler: SchedulerLike): Observable<AdsStreamEvent> {
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
        return merge(
          connectionEvents(events$, end$, scheduler),
          responses$.pipe(
            map(({ message }) => decode(message)),
            exhaustMapWithTrailing((response) => state.handle(response)),
            mergeMap((handled) => concat(of<AdsStreamEvent>({ kind: 'handled', event: handled.event }), send(handled))),
          ),
        );
      }),
    );
  });
}

function connectionEvents(
  events$: Observable<AdsEvent>,
  end$: Observable<unknown>,
  scheduler: SchedulerLike,
): Observable<AdsStreamEvent> {
  const connected$ = events$.pipe(filter(({ kind }) => kind === 'connected'));
  return merge(
    connected$.pipe(map((): AdsStreamEvent => ({ kind: 'connected' }))),
    connected$.pipe(
      switchMap(() => timer(STABLE_AFTER, scheduler)),
      takeUntil(end$),
      map((): AdsStreamEvent => ({ kind: 'stable' })),
    ),
  );
}

function decode(message: Uint8Array): ReceivedResponse {
  try {
    return readResponse(message);
  } catch (error) {
    throw new AdsStreamError(`cannot decode a response: ${messageOf(error)}`, true);
  }
}
