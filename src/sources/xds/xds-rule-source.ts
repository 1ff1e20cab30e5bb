import {
  EMPTY,
  type SchedulerLike,
  asyncScheduler,
  catchError,
  defer,
  filter,
  finalize,
  map,
  of,
  repeat,
  tap,
  timer,
} from 'rxjs';
import type { LoadedSettings } from '../../settings/read-settings';
import { fileOf } from '../../net/reloaded-files';
import type { Statistics } from '../../statistics/statistics';
import { type Backoff, backoff } from '../../streams/backoff';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import type { RuleSource } from '../../streams/ports/rule-source';
import { messageOf } from '../../text/thrown';
import { type LoadOptions, loadRules, withoutScripts } from '../loading/load-rules';
import { currentSecret } from '../secret-files';
import { type AdsTls, type ConnectAds, AdsStreamError, connectAds } from './connect-ads';
import { type AdsStreamEvent, SETTLE, STABLE_AFTER, adsStream } from './ads-stream';
import { SotwState, type XdsNode } from './sotw-state';

export interface XdsParts extends LoadedSettings, Pick<LoadOptions, 'onLoaded'> {
  readonly statistics: Statistics;
  readonly log: Log;
}

/** The rules of the management server that the settings name. */
export function xdsSource(parts: XdsParts): RuleSource {
  const { settings, statistics, log, onLoaded } = parts;
  let isConnected = false;
  statistics.gauge('ratelimit.xds.connected', () => Number(isConnected));
  const server = settings.configGrpcXdsServerUrl;
  return xdsRuleSource({
    server,
    connect: connectAds({
      target: server,
      headers: currentSecret(parts, 'configGrpcXdsClientAdditionalHeaders', { log }),
      maxMessageBytes: settings.xdsClientMaxMsgSizeInBytes,
      tls: settings.configGrpcXdsServerUseTls ? tlsOf(parts) : undefined,
      log,
    }),
    node: { id: settings.configGrpcXdsNodeId, metadata: settings.configGrpcXdsNodeMetadata },
    waits: {
      retryInterval: settings.configGrpcXdsServerConnectRetryInterval,
      initialInterval: settings.xdsClientBackoffInitialInterval,
      maxInterval: settings.xdsClientBackoffMaxInterval,
      randomFactor: settings.xdsClientBackoffRandomFactor,
      jitter: settings.xdsClientBackoffJitter,
    },
    mergeDomainConfigs: settings.mergeDomainConfig,
    withoutScripts: withoutScripts(settings),
    onLoaded,
    log,
    onConnection: (isUp) => {
      isConnected = isUp;
    },
  });
}

function tlsOf(parts: XdsParts): AdsTls {
  return {
    files: {
      ca: fileOf(parts, 'configGrpcXdsServerTlsCacert'),
      cert: fileOf(parts, 'configGrpcXdsClientTlsCert'),
      key: fileOf(parts, 'configGrpcXdsClientTlsKey'),
    },
    serverName: parts.settings.configGrpcXdsServerTlsSan,
  };
}

/** The waits before a stream is opened again, in milliseconds. */
export interface ReconnectWaits {
  /** The wait after a stream that worked (CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL). */
  readonly retryInterval: number;
  /** The wait after the first of consecutive failures (XDS_CLIENT_BACKOFF_INITIAL_INTERVAL). */
  readonly initialInterval: number;
  /** The longest wait (XDS_CLIENT_BACKOFF_MAX_INTERVAL). */
  readonly maxInterval: number;
  /** XDS_CLIENT_BACKOFF_RANDOM_FACTOR: each wait is the previous one times (1 + this), or times this when it is above 1. */
  readonly randomFactor: number;
  /** XDS_CLIENT_BACKOFF_JITTER: each wait is uniformly random between the initial one and the calculated one. */
  readonly jitter: boolean;
}

export interface XdsRuleOptions extends Omit<LoadOptions, 'form'> {
  /** The human-readable address of the server. */
  readonly server: string;
  readonly connect: ConnectAds;
  readonly node: XdsNode;
  readonly waits: ReconnectWaits;
  readonly log: Log;
  /** The pauses between responses that arrive without pause; {@link SETTLE} by default. */
  readonly settle?: Backoff;
  /** Called when the connection to the server is established and when it is closed. */
  readonly onConnection?: (isConnected: boolean) => void;
  /** Returns a number from 0 to 1. */
  readonly random?: () => number;
  readonly scheduler?: SchedulerLike;
}

/**
 * Rules from an xDS management server: state of the world, over the aggregated discovery service. Each response is answered.
 * Valid rules are emitted as loaded; invalid ones are emitted as rejected each time the server sends them. A stream that ends
 * is always opened again; the active rules are kept meanwhile.
 *
 * A server that sends without pause is handled once a second at most, with its newest response.
 *
 * Rules that are active already are emitted again only after a rejection; under another version they are emitted, but are no load.
 */
export function xdsRuleSource(options: XdsRuleOptions): RuleSource {
  const { server, connect, node, waits, random = Math.random, scheduler = asyncScheduler } = options;
  const { settle = SETTLE, onConnection = () => undefined } = options;
  const source = `xDS server ${server}`;
  const waitAfter = failureBackoff(waits, random);
  const events$ = defer(() => {
    const state = new SotwState({
      node,
      source, // Copied, because the message may be a view of a buffer that is shared.
      load: (message) => loadRules([{ path: '', content: new Uint8Array(message) }], { ...options, form: 'response' }),
    });
    const connectionLog = new ConnectionLog(options, state);
    /** Consecutive streams that failed. */
    let failures = 0;
    let hasWorked = false;
    let error: unknown;
    return defer(() => {
      hasWorked = false;
      error = undefined;
      return adsStream(connect, state, { settle, scheduler });
    }).pipe(
      tap((event) => {
        if (event.kind === 'connected') onConnection(true);
        else hasWorked = true;
        connectionLog.streamEvent(event);
      }),
      map((event) => (event.kind === 'handled' ? event.event : undefined)),
      catchError((thrown: unknown) => {
        error = thrown;
        if (!hasLostResponse(thrown)) return EMPTY;
        // The server would send the same response again immediately.
        hasWorked = false;
        return of(state.rejectLost(thrown.message));
      }),
      finalize(() => onConnection(false)),
      repeat({
        delay: () => {
          failures = hasWorked ? 0 : failures + 1;
          const wait = hasWorked ? waits.retryInterval : waitAfter(failures);
          connectionLog.streamEnd(error, { hasWorked, wait });
          return timer(wait, scheduler);
        },
      }),
      filter((event) => event !== undefined),
    );
  });
  return { events$ };
}

function failureBackoff(waits: ReconnectWaits, random: () => number): Backoff {
  const { initialInterval, maxInterval: max, randomFactor, jitter } = waits;
  const initial = Math.min(initialInterval, max);
  const factor = randomFactor > 1 ? randomFactor : 1 + randomFactor;
  return backoff({ initial, max, factor, ...(jitter && { drawn: (wait) => [initial, wait] }), random });
}

function hasLostResponse(error: unknown): error is AdsStreamError {
  return error instanceof AdsStreamError && error.hasLostResponse;
}

/** Logs changes of the connection to the server: one line per change, not per attempt. */
class ConnectionLog {
  readonly #options: XdsRuleOptions;
  readonly #state: SotwState;
  /** Why there is no stream; undefined while there is one. */
  #failure: string | undefined;
  #hasResponse = false;
  /** Whether a warning has been logged whose end has not. */
  #isDown = false;
  readonly #silent: ConditionLog;

  constructor(options: XdsRuleOptions, state: SotwState) {
    this.#options = options;
    this.#state = state;
    const { server, node, log } = options;
    this.#silent = new ConditionLog(log, {
      begins: `the xDS server has sent no rules for ${STABLE_AFTER / 1000} s: it may not know this node`,
      ends: 'the xDS server has sent rules',
      fields: { server, node: node.id },
    });
  }

  streamEvent({ kind }: AdsStreamEvent): void {
    switch (kind) {
      case 'connected':
        this.#failure = undefined;
        this.#connected();
        break;
      case 'handled':
        this.#hasResponse = true;
        this.#silent.ended();
        break;
      case 'stable':
        if (!this.#hasResponse) this.#silent.occurred();
    }
  }

  /** @param error undefined when the server has ended the stream */
  streamEnd(error: unknown, { hasWorked, wait }: { readonly hasWorked: boolean; readonly wait: number }): void {
    const { server, log } = this.#options;
    const failure = error === undefined ? 'the server ended the stream' : messageOf(error);
    const fields = { server, wait: `${Math.round(wait)}ms` };
    // A lost response is reported as a rejection.
    if (failure === this.#failure || hasLostResponse(error)) {
      log.debug(`still no stream from the xDS server: ${failure}`, fields);
    } else if (hasWorked) {
      log.info(`the stream from the xDS server ended; reconnecting: ${failure}`, fields);
    } else {
      this.#isDown = true;
      log.warn(`no stream from the xDS server; keeping the active rules and retrying: ${failure}`, fields);
    }
    this.#failure = failure;
  }

  /** At the level of the line that it ends. */
  #connected(): void {
    const { server, node, log } = this.#options;
    const fields = { server, node: node.id, version: this.#state.version };
    if (this.#isDown) log.notice('connected to the xDS server', fields);
    else log.info('connected to the xDS server', fields);
    this.#isDown = false;
  }
}
