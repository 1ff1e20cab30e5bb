import { settingRows } from '../../../src/settings/table/settings-table';
import type { Secrets } from './secrets';

export { settingRows } from '../../../src/settings/table/settings-table';

type Environment = Readonly<Record<string, string>>;

/** The servers that the service connects to, as `host:port`; for stores also lists of these, without a scheme. */
export interface ServerAddresses {
  readonly store: string;
  readonly perSecond: string;
  readonly xds: string;
  readonly otlp: string;
}

/**
 * Settings and variables of the libraries with a distinct secret in each one that may hold one; all of them are in use.
 */
export function everySecret(secrets: Secrets, { store, perSecond, xds, otlp }: ServerAddresses): Environment {
  return {
    OPERATOR_TOKEN: secrets.of('OPERATOR_TOKEN'),
    OPERATOR_PEERS_TOKEN: secrets.of('OPERATOR_PEERS_TOKEN'),
    OPERATOR_TOKENS: `ann view sha256:${secrets.of('OPERATOR_TOKENS').replaceAll(/\W/g, '').padEnd(64, '0')}`,
    BACKEND_TYPE: 'kvstore',
    KVSTORE_URL: withCredentials(store, secrets.inUrl('KVSTORE_URL')),
    KVSTORE_AUTH: `ann:${secrets.of('KVSTORE_AUTH')}`,
    KVSTORE_SENTINEL_AUTH: secrets.of('KVSTORE_SENTINEL_AUTH'),
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: withCredentials(perSecond, secrets.inUrl('KVSTORE_PERSECOND_URL')),
    KVSTORE_PERSECOND_AUTH: secrets.of('KVSTORE_PERSECOND_AUTH'),
    KVSTORE_PERSECOND_SENTINEL_AUTH: `ann:${secrets.of('KVSTORE_PERSECOND_SENTINEL_AUTH')}`,
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: xds,
    CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: [
      `authorization:Bearer ${secrets.of('CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS')}`,
      `proxy-authorization:Basic ${basic(secrets.of('another of CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS'))}`,
      `key-bin:${secrets.of('a third of CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS')}`,
    ].join(','),
    ...otlpTo(secrets, otlp),
  };
}

/** Settings of traces and metrics with a secret in every OTLP variable that may hold one. */
export function otlpTo(secrets: Secrets, otlp: string): Environment {
  return {
    TRACING_ENABLED: 'true',
    USE_OTLP_METRICS: 'true',
    STATS_FLUSH_INTERVAL: '100ms',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://ann:${secrets.inUrl('OTEL_EXPORTER_OTLP_ENDPOINT')}@${otlp}`,
    OTEL_EXPORTER_OTLP_HEADERS: `x-key=${secrets.inUrl('OTEL_EXPORTER_OTLP_HEADERS')}`,
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: `x-token=Bearer%20${secrets.inUrl('OTEL_EXPORTER_OTLP_TRACES_HEADERS')}`,
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: `x-token=Bearer%20${secrets.inUrl('OTEL_EXPORTER_OTLP_METRICS_HEADERS')}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  };
}

/** The same settings under their names in the Go service. */
export function underGoNames(environment: Environment): Environment {
  const aliases = new Map(settingRows.map(({ name, alias }) => [name, alias ?? name]));
  return Object.fromEntries(Object.entries(environment).map(([name, text]) => [aliases.get(name) ?? name, text]));
}

function basic(password: string) {
  return Buffer.from(`ann:${password}`).toString('base64');
}

/** The list with each `host:port` as a URL with user and password. */
function withCredentials(list: string, password: string): string {
  return list.replaceAll(/[^,]+:\d+/g, (address) => `redis://ann:${password}@${address}`);
}
