import { type MonoTypeOperatorFunction, type Observable, identity, tap } from 'rxjs';
import type { LoadedSettings } from '../settings/read-settings';
import type { Settings } from '../settings/settings';
import { ruleFileSource } from '../sources/rule-files/rule-file-source';
import { connectAds } from '../sources/xds/connection/connect-ads';
import { xdsRuleSource } from '../sources/xds/xds-rule-source';
import type { Statistics } from '../statistics/statistics';
import type { Log } from '../streams/ports/log';
import type { RuleEvent, RuleSource } from '../streams/ports/rule-source';
import { RuleLog } from './rule-log';
import { currentSecret } from './secret-files';
import { forwardGrpcLibraryLogs } from './grpc-library';

/**
 * The events of the rule source that the settings select, counted and logged as they pass. Two gauges let an alert detect a
 * service that keeps old rules: `ratelimit.config.loaded_at`, when the active rules were loaded, in Unix seconds (0: no rules
 * yet), and `ratelimit.config.rejected`, 1 while the newest rules are rejected.
 *
 * @param activate delays loads until their rules are active; without it they are at once
 */
export function ruleEvents(
  reading: LoadedSettings,
  { statistics, log }: { readonly statistics: Statistics; readonly log: Log },
  activate: MonoTypeOperatorFunction<RuleEvent> = identity,
): Observable<RuleEvent> {
  const successes = statistics.counter('ratelimit.service.config_load_success');
  const errors = statistics.counter('ratelimit.service.config_load_error');
  const ruleLog = new RuleLog(log);
  let loadedAt = 0;
  let isRejected = false;
  statistics.gauge('ratelimit.config.loaded_at', () => loadedAt);
  statistics.gauge('ratelimit.config.rejected', () => Number(isRejected));
  return ruleSource(reading, statistics, log).events$.pipe(
    activate,
    tap((event) => {
      isRejected = event.kind === 'rejected';
      if (event.kind === 'rejected') {
        errors.add(1);
        ruleLog.rejected(event, loadedAt > 0);
        return;
      }
      successes.add(1);
      if (event.isRepeated === true) return;
      loadedAt = Math.floor(Date.now() / 1000);
      ruleLog.loaded(event);
    }),
  );
}

function ruleSource(reading: LoadedSettings, statistics: Statistics, log: Log): RuleSource {
  const { settings } = reading;
  return settings.configType === 'FILE' ? fileSource(settings, statistics) : xdsSource(reading, statistics, log);
}

function fileSource(settings: Settings, statistics: Statistics): RuleSource {
  const { events$ } = ruleFileSource({
    root: settings.runtimeRoot,
    subdirectory: settings.runtimeSubdirectory,
    appDirectory: settings.runtimeAppdirectory,
    ignoreDotFiles: settings.runtimeIgnoredotfiles,
    watchRoot: settings.runtimeWatchRoot,
    mergeDomainConfigs: settings.mergeDomainConfig,
  });
  const attempts = statistics.counter('runtime.load_attempts');
  const failures = statistics.counter('runtime.load_failures');
  let count = 0;
  statistics.gauge('runtime.num_values', () => count);
  function countLoad(event: RuleEvent): void {
    attempts.add(1);
    if (event.kind === 'rejected') failures.add(1);
    else count = event.files ?? 0;
  }
  return { events$: events$.pipe(tap(countLoad)) };
}

function xdsSource(reading: LoadedSettings, statistics: Statistics, log: Log): RuleSource {
  const { settings, nameOf } = reading;
  forwardGrpcLibraryLogs(log);
  let isConnected = false;
  statistics.gauge('ratelimit.xds.connected', () => Number(isConnected));
  const server = settings.configGrpcXdsServerUrl;
  return xdsRuleSource({
    server,
    connect: connectAds({
      target: server,
      headers: currentSecret(reading, 'configGrpcXdsClientAdditionalHeaders', { log }),
      maxMessageBytes: settings.xdsClientMaxMsgSizeInBytes,
      tls: settings.configGrpcXdsServerUseTls
        ? {
            ca: settings.configGrpcXdsServerTlsCacert,
            certificate: settings.configGrpcXdsClientTlsCert,
            key: settings.configGrpcXdsClientTlsKey,
            serverName: settings.configGrpcXdsServerTlsSan,
            variables: {
              ca: nameOf('configGrpcXdsServerTlsCacert'),
              certificate: nameOf('configGrpcXdsClientTlsCert'),
              key: nameOf('configGrpcXdsClientTlsKey'),
            },
          }
        : undefined,
      log,
    }),
    node: { id: settings.configGrpcXdsNodeId, metadata: settings.configGrpcXdsNodeMetadata },
    backoff: {
      retryInterval: settings.configGrpcXdsServerConnectRetryInterval,
      initialInterval: settings.xdsClientBackoffInitialInterval,
      maxInterval: settings.xdsClientBackoffMaxInterval,
      randomFactor: settings.xdsClientBackoffRandomFactor,
      jitter: settings.xdsClientBackoffJitter,
    },
    mergeDomainConfigs: settings.mergeDomainConfig,
    log,
    onConnection: (isUp) => {
      isConnected = isUp;
    },
  });
}
