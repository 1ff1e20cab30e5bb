import { type Observable, tap } from 'rxjs';
import type { Settings } from '../settings/settings';
import { ruleFileSource } from '../sources/rule-files/rule-file-source';
import { connectAds } from '../sources/xds/connect-ads';
import { xdsRuleSource } from '../sources/xds/xds-rule-source';
import type { Statistics } from '../statistics/statistics';
import type { Log } from '../streams/ports/log';
import type { RuleEvent, RuleSource } from '../streams/ports/rule-source';
import { forwardGrpcLibraryLogs } from './grpc-library';

/**
 * The events of the rule source that the settings choose, counted and told to the log as they pass. Two gauges let an alert see
 * a service that goes on with old rules: `ratelimit.config.loaded_at`, when the rules in force came in Unix seconds (0: there
 * are none yet), and `ratelimit.config.rejected`, 1 while the newest rules are refused.
 */
export function ruleEvents(settings: Settings, statistics: Statistics, log: Log): Observable<RuleEvent> {
  const successes = statistics.counter('ratelimit.service.config_load_success');
  const errors = statistics.counter('ratelimit.service.config_load_error');
  let loadedAt = 0;
  let isRejected = false;
  statistics.gauge('ratelimit.config.loaded_at', () => loadedAt);
  statistics.gauge('ratelimit.config.rejected', () => Number(isRejected));
  return ruleSource(settings, statistics, log).events$.pipe(
    tap((event) => {
      isRejected = event.kind === 'rejected';
      if (event.kind === 'rejected') {
        errors.add(1);
        if (event.isRepeated !== true) log.error(`the new rules are refused; those in force stay: ${event.reason}`);
        return;
      }
      successes.add(1);
      loadedAt = Math.floor(Date.now() / 1000);
      for (const warning of event.warnings) log.warn(warning);
      log.info('rules are in force', { source: event.origin.source, version: event.origin.version });
    }),
  );
}

function ruleSource(settings: Settings, statistics: Statistics, log: Log): RuleSource {
  return settings.configType === 'FILE' ? files(settings, statistics) : xds(settings, statistics, log);
}

function files(settings: Settings, statistics: Statistics): RuleSource {
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

function xds(settings: Settings, statistics: Statistics, log: Log): RuleSource {
  forwardGrpcLibraryLogs(log);
  let isConnected = false;
  statistics.gauge('ratelimit.xds.connected', () => Number(isConnected));
  const server = settings.configGrpcXdsServerUrl;
  return xdsRuleSource({
    server,
    connect: connectAds({
      target: server,
      headers: settings.configGrpcXdsClientAdditionalHeaders,
      maxMessageBytes: settings.xdsClientMaxMsgSizeInBytes,
      tls: settings.configGrpcXdsServerUseTls
        ? {
            ca: settings.configGrpcXdsServerTlsCacert,
            certificate: settings.configGrpcXdsClientTlsCert,
            key: settings.configGrpcXdsClientTlsKey,
            serverName: settings.configGrpcXdsServerTlsSan,
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
    onConnection: (stands) => {
      isConnected = stands;
    },
  });
}
