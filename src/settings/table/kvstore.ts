import { anyOf, is, matches } from './condition';
import { boolean } from '../values/choices';
import { timerDuration } from '../values/duration';
import { filePath } from '../values/text';
import { MAIN_INSTANCE, pipelineSettings, poolSettings, serverSettings, tlsSetting } from './kvstore-instance';
import { group, setting } from './setting';

/** The files are common to both stores; a URL can request TLS too. */
const STORE_TLS = [
  anyOf('with KVSTORE_TLS=true, KVSTORE_PERSECOND_TLS=true or a rediss:// URL', [
    is('KVSTORE_TLS', 'true'),
    is('KVSTORE_PERSECOND_TLS', 'true'),
    requestsTls('KVSTORE_URL'),
    requestsTls('KVSTORE_PERSECOND_URL'),
  ]),
];

function requestsTls(name: string) {
  return matches(name, /rediss:\/\//i, {
    text: `with a rediss:// URL in ${name}`,
    isOtherwise: 'has no rediss:// URL',
  });
}

export const kvstoreSettings = group({
  title: 'Key-value store (Redis or Valkey)',
  note: 'KVSTORE_PIPELINE_WINDOW is listed under Counters.',
  requires: [is('BACKEND_TYPE', 'kvstore')],
  settings: [
    ...serverSettings(MAIN_INSTANCE),
    ...poolSettings(MAIN_INSTANCE),
    ...pipelineSettings(MAIN_INSTANCE),
    tlsSetting(MAIN_INSTANCE),
    setting({
      field: 'kvstoreTlsCacert',
      name: 'KVSTORE_TLS_CACERT',
      alias: 'REDIS_TLS_CACERT',
      type: filePath,
      default: undefined,
      requires: STORE_TLS,
      help: 'PEM file with the CA of the servers of both stores, trusted in addition to the CAs of the system.',
    }),
    setting({
      field: 'kvstoreTlsClientCert',
      name: 'KVSTORE_TLS_CLIENT_CERT',
      alias: 'REDIS_TLS_CLIENT_CERT',
      type: filePath,
      default: undefined,
      requires: STORE_TLS,
      help: 'PEM file with the client certificate for the servers of both stores.',
    }),
    setting({
      field: 'kvstoreTlsClientKey',
      name: 'KVSTORE_TLS_CLIENT_KEY',
      alias: 'REDIS_TLS_CLIENT_KEY',
      type: filePath,
      default: undefined,
      requires: STORE_TLS,
      help: 'PEM file with the private key of that certificate.',
    }),
    setting({
      field: 'kvstoreTlsSkipHostnameVerification',
      name: 'KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION',
      alias: 'REDIS_TLS_SKIP_HOSTNAME_VERIFICATION',
      type: boolean,
      default: false,
      requires: STORE_TLS,
      help: 'Verifies the certificate of a server, but not the host name in it.',
    }),
    setting({
      field: 'kvstoreCloseConnectionOnReadonlyError',
      name: 'KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR',
      alias: 'REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR',
      type: boolean,
      default: false,
      help: 'Closes a connection whose server replies that it is a read-only replica; for both stores.',
    }),
    setting({
      field: 'kvstoreStartupInitialInterval',
      name: 'KVSTORE_STARTUP_INITIAL_INTERVAL',
      alias: 'REDIS_STARTUP_INITIAL_INTERVAL',
      type: timerDuration('above 0'),
      default: 1000,
      help: 'Delay before the first retry of connecting at startup.',
    }),
    setting({
      field: 'kvstoreStartupMaxInterval',
      name: 'KVSTORE_STARTUP_MAX_INTERVAL',
      alias: 'REDIS_STARTUP_MAX_INTERVAL',
      type: timerDuration('above 0'),
      default: 30_000,
      help: 'Longest delay between two attempts to connect at startup.',
    }),
    setting({
      field: 'kvstoreStartupMaxElapsedTime',
      name: 'KVSTORE_STARTUP_MAX_ELAPSED_TIME',
      alias: 'REDIS_STARTUP_MAX_ELAPSED_TIME',
      type: timerDuration('0 or more'),
      default: 0,
      help: 'Time after which the service stops trying to connect at startup and exits; 0: no limit.',
    }),
  ],
});
