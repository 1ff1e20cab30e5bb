import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  catchError,
  concat,
  defer,
  filter,
  finalize,
  map,
  of,
  tap,
  throwError,
} from 'rxjs';
import type { Log } from '../../streams/ports/log';
import type { RuleEvent, RuleSource } from '../../streams/ports/rule-source';
import { AdsStreamError, type ConnectAds } from './ads';
import { ConnectionLog } from './connection-log';
import { type LoadResourcesOptions, loadResources } from './resources/load-resources';
import { type AdsStreamEvent, adsStream } from './stream/ads-stream';
import { type ReconnectWaits, reconnect } from './stream/reconnect';
import { SotwState, type XdsNode } from './stream/sotw-state';

export interface XdsRuleOptions extends LoadResourcesOptions {
  /** The human-readable address of the server. */
  readonly server: string;
  readonly connect: ConnectAds;
  readonly node: XdsNode;
  readonly backoff: ReconnectWaits;
  readonly log: Log;
  /** Called when the connection to the server is established and when it is closed. */
  readonly onConnection?: (isConnected: boolean) => void;
  /** Returns a number from 0 to 1. */
  readonly random?: () => number;
  readonly scheduler?: SchedulerLike;
}

type SourceEvent = AdsStreamEvent | { readonly kind: 'lost'; readonly event: RuleEvent };

/**
 * Rules from an xDS management server: state of the world, over the aggregated discovery service. Each response is answered.
 * Valid rules are emitted as loaded; invalid ones are emitted as rejected each time the server sends them. A stream that ends
 * is always opened again; the active rules are kept meanwhile.
 *
 * Rules that are active already are emitted again only after a rejection or under another version.
 */
export function xdsRuleSource(options: XdsRuleOptions): RuleSource {
  const { server, connect, node, backoff, log, random = Math.random, scheduler = asyncScheduler } = options;
  const { onConnection = () => undefined } = options;
  const source = `xDS server ${server}`;
  const events$ = defer(() => {
    const state = new SotwState({ node, source, load: (message) => loadResources(message, options) });
    const connectionLog = new ConnectionLog({ server, nodeId: node.id, log, version: () => state.version });
    return adsStream(connect, state, scheduler).pipe(
      tap((event) => {
        if (event.kind === 'connected') onConnection(true);
        connectionLog.streamEvent(event);
      }),
      catchError((error: unknown): Observable<SourceEvent> => {
        const failed$ = throwError(() => error);
        if (!hasLostResponse(error)) return failed$;
        return concat(of({ kind: 'lost', event: state.rejectLost(error.message) } as const), failed$);
      }),
      finalize(() => onConnection(false)),
      reconnect({
        waits: backoff,
        works: ({ kind }) => kind === 'handled' || kind === 'stable',
        // The server would send the same response again immediately.
        fails: hasLostResponse,
        onEnd: (end) => connectionLog.attemptEnd(end, hasLostResponse(end.error)),
        random,
        scheduler,
      }),
      map((event) => (event.kind === 'handled' || event.kind === 'lost' ? event.event : undefined)),
      filter((event) => event !== undefined),
    );
  });
  return { events$ };
}

function hasLostResponse(error: unknown): error is AdsStreamError {
  return error instanceof AdsStreamError && error.hasLostResponse;
}
