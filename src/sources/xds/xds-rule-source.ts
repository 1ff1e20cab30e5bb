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
import type { LoadedSettings } from '../../settings/read-settings';
import { sectionOf } from '../../settings/settings';
import type { Statistics } from '../../statistics/statistics';
import type { Backoff } from '../../streams/backoff';
import { ConditionLog } from '../../streams/condition-log';
import type { Log, LogFields } from '../../streams/ports/log';
import type { RuleEvent, RuleSource } from '../../streams/ports/rule-source';
import { messageOf } from '../../text/thrown';
import { type LoadOptions, loadRules } from '../loading/load-rules';
import { currentSecret } from '../secret-files';
import { type ConnectAds, AdsStreamError, connectAds } from './connect-ads';
import {
  type AdsStreamEvent,
  type AttemptEnd,
  type ReconnectWaits,
  SETTLE,
  STABLE_AFTER,
  adsStream,
  reconnect,
} from './ads-stream';
import { SotwState, type XdsNode } from './sotw-state';

export interface XdsParts extends LoadedSettings, Pick<LoadOptions, 'onLoaded'> {
  readonly statistics: Statistics;
  readonly log: Log;
}

/** The rules of the management server that the settings name. */
export function xdsSource(parts: XdsParts): RuleSource {
  const { settings, statistics, log, onLoaded } = parts;
  const xds = sectionOf(parts, 'configGrpcXds');
  let isConnected = false;
  statistics.gauge('ratelimit.xds.connected', () => Number(isConnected));
  const server = xds.serverUrl;
  return xdsRuleSource({
    server,
    connect: connectAds({
      target: server,
      headers: currentSecret(parts, 'configGrpcXdsClientAdditionalHeaders', { log }),
      maxMessageBytes: settings.xdsClientMaxMsgSizeInBytes,
      tls: xds.serverUseTls ? xds : undefined,
      log,
    }),
    node: { id: xds.nodeId, metadata: xds.nodeMetadata },
    backoff: { ...sectionOf(parts, 'xdsClientBackoff'), retryInterval: xds.serverConnectRetryInterval },
    mergeDomainConfigs: settings.mergeDomainConfig,
    onLoaded,
    log,
    onConnection: (isUp) => {
      isConnected = isUp;
    },
  });
}

export interface XdsRuleOptions extends Omit<LoadOptions, 'form'> {
  /** The human-readable address of the server. */
  readonly server: string;
  readonly connect: ConnectAds;
  readonly node: XdsNode;
  readonly backoff: ReconnectWaits;
  readonly log: Log;
  /** The pauses between responses that arrive without pause; {@link SETTLE} by default. */
  readonly settle?: Backoff;
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
 * A server that sends without pause is handled once a second at most, with its newest response.
 *
 * Rules that are active already are emitted again only after a rejection or under another version.
 */
export function xdsRuleSource(options: XdsRuleOptions): RuleSource {
  const { server, connect, node, backoff, log, random = Math.random, scheduler = asyncScheduler } = options;
  const { settle = SETTLE, onConnection = () => undefined } = options;
  const source = `xDS server ${server}`;
  const events$ = defer(() => {
    const state = new SotwState({
      node,
      source, // Copied, because the message may be a view of a buffer that is shared.
      load: (message) => loadRules([{ path: '', content: new Uint8Array(message) }], { ...options, form: 'response' }),
    });
    const connectionLog = new ConnectionLog({ server, nodeId: node.id, log, version: () => state.version });
    return adsStream(connect, state, { settle, scheduler }).pipe(
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

interface ConnectionLogOptions {
  /** The address of the server. */
  readonly server: string;
  readonly nodeId: string;
  readonly log: Log;
  /** The last accepted version; undefined before the first. */
  readonly version: () => string | undefined;
}

/** Logs changes of the connection to the server: one line per change, not per attempt. */
class ConnectionLog {
  readonly #options: ConnectionLogOptions;
  /** Why there is no stream; undefined while there is one. */
  #failure: string | undefined;
  #hasResponse = false;
  /** Whether a warning has been logged whose end has not. */
  #isDown = false;
  readonly #silent: ConditionLog;

  constructor(options: ConnectionLogOptions) {
    this.#options = options;
    const { server, nodeId, log } = options;
    this.#silent = new ConditionLog(log, {
      begins: `the xDS server has sent no rules for ${STABLE_AFTER / 1000} s: it may not know this node`,
      ends: 'the xDS server has sent rules',
      fields: { server, node: nodeId },
    });
  }

  streamEvent({ kind }: AdsStreamEvent): void {
    const { server, nodeId, version } = this.#options;
    switch (kind) {
      case 'connected':
        this.#failure = undefined;
        this.#connected({ server, node: nodeId, version: version() });
        break;
      case 'handled':
        this.#hasResponse = true;
        this.#silent.ended();
        break;
      case 'stable':
        if (!this.#hasResponse) this.#silent.occurred();
    }
  }

  /** @param isReported whether the failure has been reported as a rejection already */
  attemptEnd({ error, failures, wait }: AttemptEnd, isReported: boolean): void {
    const { server, log } = this.#options;
    const failure = error === undefined ? 'the server ended the stream' : messageOf(error);
    const fields = { server, wait: `${Math.round(wait)}ms` };
    if (failure === this.#failure || isReported) {
      log.debug(`still no stream from the xDS server: ${failure}`, fields);
    } else if (failures === 0) {
      log.info(`the stream from the xDS server ended; reconnecting: ${failure}`, fields);
    } else {
      this.#isDown = true;
      log.warn(`no stream from the xDS server; keeping the active rules and retrying: ${failure}`, fields);
    }
    this.#failure = failure;
  }

  /** At the level of the line that it ends. */
  #connected(fields: LogFields): void {
    const { log } = this.#options;
    if (this.#isDown) log.notice('connected to the xDS server', fields);
    else log.info('connected to the xDS server', fields);
    this.#isDown = false;
  }
}
