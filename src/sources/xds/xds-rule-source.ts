import { EMPTY, type SchedulerLike, asyncScheduler, catchError, defer, finalize, of, repeat, timer } from 'rxjs';
import { filesOf } from '../../net/reloaded-files';
import type { LoadedSettings } from '../../settings/read-settings';
import { type Field, type Settings, TLS_FILES } from '../../settings/settings';
import type { Statistics } from '../../statistics/statistics';
import { type Backoff, backoff } from '../../streams/backoff';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import type { RuleSource } from '../../streams/ports/rule-source';
import { messageOf } from '../../text/thrown';
import { type LoadOptions, loadRules } from '../loading/load-rules';
import { currentSecret } from '../secret-files';
import { type ConnectAds, AdsStreamError, connectAds } from './connect-ads';
import { type AdsProgress, SETTLE, STABLE_AFTER, adsStream } from './ads-stream';
import { type LoadResponse, type XdsNodeSettings, SotwState } from './sotw-state';

/** What a rule source is made with. */
export interface RuleSourceParts extends LoadedSettings, Pick<LoadOptions, 'onLoaded'> {
  readonly statistics: Statistics;
  readonly log: Log;
}

/** The rules of the management server that the settings name. */
export function xdsSource(parts: RuleSourceParts): RuleSource {
  const { settings, statistics, log, onLoaded } = parts;
  let isConnected = false;
  statistics.gauge('ratelimit.xds.connected', () => Number(isConnected));
  const tls = {
    files: filesOf(parts, TLS_FILES.xds),
    serverName: settings.configGrpcXdsServerTlsSan,
  };
  return xdsRuleSource({
    settings,
    connect: connectAds({
      target: settings.configGrpcXdsServerUrl,
      headers: currentSecret(parts, 'configGrpcXdsClientAdditionalHeaders', { log }),
      maxMessageBytes: settings.xdsClientMaxMsgSizeInBytes,
      tls: settings.configGrpcXdsServerUseTls ? tls : undefined,
      log,
    }),
    load: (content) => loadRules([{ path: '', content }], { form: 'response', settings, onLoaded }),
    log,
    onConnection: (isUp) => {
      isConnected = isUp;
    },
  });
}

/** The waits before a stream is opened again, in milliseconds. */
type WaitSettings = Pick<
  Settings,
  'configGrpcXdsServerConnectRetryInterval' | Extract<Field, `xdsClientBackoff${string}`>
>;

export interface XdsRuleOptions {
  readonly settings: XdsNodeSettings & WaitSettings;
  readonly connect: ConnectAds;
  readonly load: LoadResponse;
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
 * Rules from an xDS management server: state of the world, over the aggregated discovery service. Each response is
 * answered. Valid rules are emitted as loaded; invalid ones are emitted as rejected each time the server sends them. A
 * stream that ends is always opened again; the active rules are kept meanwhile.
 *
 * A server that sends without pause is handled once a second at most, with its newest response.
 *
 * Rules that are active already are emitted again only after a rejection; under another version they are emitted, but
 * are no load.
 */
export function xdsRuleSource(options: XdsRuleOptions): RuleSource {
  const { settings, connect, load, settle = SETTLE, onConnection = () => undefined } = options;
  const { random = Math.random, scheduler = asyncScheduler } = options;
  const waitAfter = failureBackoff(settings, random);
  const events$ = defer(() => {
    const state = new SotwState(settings, load);
    const connectionLog = new ConnectionLog(options, state);
    /** Consecutive streams that failed. */
    let failures = 0;
    let hasWorked = false;
    let error: unknown;
    function onProgress(progress: AdsProgress): void {
      if (progress === 'connected') onConnection(true);
      else hasWorked = true;
      connectionLog.progress(progress);
    }
    return defer(() => {
      hasWorked = false;
      error = undefined;
      return adsStream(connect, state, { settle, scheduler, onProgress });
    }).pipe(
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
          const wait = hasWorked ? settings.configGrpcXdsServerConnectRetryInterval : waitAfter(failures);
          connectionLog.streamEnd(error, { hasWorked, wait });
          return timer(wait, scheduler);
        },
      }),
    );
  });
  return { events$ };
}

/** Each wait is the previous one times (1 + the factor), or times the factor when it is above 1. */
function failureBackoff(settings: WaitSettings, random: () => number): Backoff {
  const { xdsClientBackoffMaxInterval: max, xdsClientBackoffRandomFactor: added } = settings;
  const initial = Math.min(settings.xdsClientBackoffInitialInterval, max);
  const jitter = settings.xdsClientBackoffJitter && { jitter: (wait: number) => [initial, wait] as const };
  return backoff({ initial, max, factor: added > 1 ? added : 1 + added, ...jitter, random });
}

function hasLostResponse(error: unknown): error is AdsStreamError {
  return error instanceof AdsStreamError && error.hasLostResponse;
}

/** Logs changes of the connection to the server: one line per change, not per attempt. */
class ConnectionLog {
  readonly #log: Log;
  readonly #state: SotwState;
  readonly #fields: { readonly server: string; readonly node: string };
  /** Why there is no stream; undefined while there is one. */
  #failure: string | undefined;
  #hasResponse = false;
  /** Whether a warning has been logged whose end has not. */
  #isDown = false;
  readonly #silent: ConditionLog;

  constructor({ settings, log }: XdsRuleOptions, state: SotwState) {
    this.#log = log;
    this.#state = state;
    this.#fields = { server: settings.configGrpcXdsServerUrl, node: settings.configGrpcXdsNodeId };
    this.#silent = new ConditionLog(log, {
      begins: `the xDS server has sent no rules for ${STABLE_AFTER / 1000} s: it may not know this node`,
      ends: 'the xDS server has sent rules',
      fields: this.#fields,
    });
  }

  progress(progress: AdsProgress): void {
    if (progress === 'connected') {
      // At the level of the line that it ends.
      const level = this.#isDown ? 'notice' : 'info';
      this.#log[level]('connected to the xDS server', { ...this.#fields, version: this.#state.version });
      this.#failure = undefined;
      this.#isDown = false;
    } else if (progress === 'handled') {
      this.#hasResponse = true;
      this.#silent.ended();
    } else if (!this.#hasResponse) {
      this.#silent.occurred();
    }
  }

  /** @param error undefined when the server has ended the stream */
  streamEnd(error: unknown, { hasWorked, wait }: { readonly hasWorked: boolean; readonly wait: number }): void {
    const failure = error === undefined ? 'the server ended the stream' : messageOf(error);
    const fields = { server: this.#fields.server, wait: `${Math.round(wait)}ms` };
    // A lost response is reported as a rejection.
    if (failure === this.#failure || hasLostResponse(error)) {
      this.#log.debug(`still no stream from the xDS server: ${failure}`, fields);
    } else if (hasWorked) {
      this.#log.info(`the stream from the xDS server ended; reconnecting: ${failure}`, fields);
    } else {
      this.#isDown = true;
      this.#log.warn(`no stream from the xDS server; keeping the active rules and retrying: ${failure}`, fields);
    }
    this.#failure = failure;
  }
}
