import type { LoadedSettings } from '../settings/read-settings';
import { sectionOf } from '../settings/settings';
import { connectAds } from '../sources/xds/connection/connect-ads';
import { xdsRuleSource } from '../sources/xds/xds-rule-source';
import type { Statistics } from '../statistics/statistics';
import type { Log } from '../streams/ports/log';
import type { RuleSource } from '../streams/ports/rule-source';
import { forwardGrpcLibraryLogs } from './grpc-library';
import { currentSecret } from './secret-files';

/** The rules of the management server that the settings name. */
export function xdsSource(reading: LoadedSettings, statistics: Statistics, log: Log): RuleSource {
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
      ...sectionOf(reading, 'xdsClientBackoff'),
      retryInterval: settings.configGrpcXdsServerConnectRetryInterval,
    },
    mergeDomainConfigs: settings.mergeDomainConfig,
    log,
    onConnection: (isUp) => {
      isConnected = isUp;
    },
  });
}
