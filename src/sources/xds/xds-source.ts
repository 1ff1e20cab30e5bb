import { sectionOf } from '../../settings/settings';
import type { LoadedSettings } from '../../settings/read-settings';
import type { Statistics } from '../../statistics/statistics';
import type { Log } from '../../streams/ports/log';
import type { RuleSource } from '../../streams/ports/rule-source';
import { currentSecret } from '../secret-files';
import { connectAds } from './connection/connect-ads';
import type { LoadResourcesOptions } from './resources/load-resources';
import { xdsRuleSource } from './xds-rule-source';

export interface XdsParts extends LoadedSettings, Pick<LoadResourcesOptions, 'onLoaded'> {
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
