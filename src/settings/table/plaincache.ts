import { is, isSet } from './condition';
import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { timerDuration } from '../values/duration';
import { list } from '../values/lists';
import { isServer, isSocketPath } from '../values/addresses';
import { filePath, textLike } from '../values/text';
import { wholeNumber } from '../values/numbers';

export const plaincacheSettings = group({
  title: 'Plain cache (memcached)',
  note: 'Every instance of weir needs the same servers in the same order.',
  requires: [is('BACKEND_TYPE', 'plaincache')],
  settings: [
    setting({
      field: 'plaincacheHostPort',
      name: 'PLAINCACHE_HOST_PORT',
      alias: 'MEMCACHE_HOST_PORT',
      type: list('host:port or socket path', (item) => isServer(item) || isSocketPath(item)),
      default: [],
      help: 'memcached servers; the keys are distributed over them.',
    }),
    setting({
      field: 'plaincacheSrv',
      name: 'PLAINCACHE_SRV',
      alias: 'MEMCACHE_SRV',
      type: textLike(/^_[^.\s]+\._[^.\s]+\.\S+$/, '_service._protocol.name'),
      default: undefined,
      help: 'DNS SRV record that lists the servers, instead of PLAINCACHE_HOST_PORT.',
    }),
    setting({
      field: 'plaincacheSrvRefresh',
      name: 'PLAINCACHE_SRV_REFRESH',
      alias: 'MEMCACHE_SRV_REFRESH',
      type: timerDuration('0 or more'),
      default: 0,
      requires: [isSet('PLAINCACHE_SRV')],
      help: 'Interval between lookups of that record; 0: only at startup.',
    }),
    setting({
      field: 'plaincacheMaxIdleConns',
      name: 'PLAINCACHE_MAX_IDLE_CONNS',
      alias: 'MEMCACHE_MAX_IDLE_CONNS',
      type: wholeNumber({ min: 1 }),
      default: 2,
      help: 'Number of connections to keep open to each server.',
    }),
    setting({
      field: 'plaincacheTls',
      name: 'PLAINCACHE_TLS',
      alias: 'MEMCACHE_TLS',
      type: boolean,
      default: false,
      help: 'Connects to the servers with TLS.',
    }),
    setting({
      field: 'plaincacheTlsCacert',
      name: 'PLAINCACHE_TLS_CACERT',
      alias: 'MEMCACHE_TLS_CACERT',
      type: filePath,
      default: undefined,
      requires: [is('PLAINCACHE_TLS', 'true')],
      help: 'PEM file with the CA of the servers, trusted in addition to the CAs of the system.',
    }),
    setting({
      field: 'plaincacheTlsClientCert',
      name: 'PLAINCACHE_TLS_CLIENT_CERT',
      alias: 'MEMCACHE_TLS_CLIENT_CERT',
      type: filePath,
      default: undefined,
      requires: [is('PLAINCACHE_TLS', 'true')],
      help: 'PEM file with the client certificate.',
    }),
    setting({
      field: 'plaincacheTlsClientKey',
      name: 'PLAINCACHE_TLS_CLIENT_KEY',
      alias: 'MEMCACHE_TLS_CLIENT_KEY',
      type: filePath,
      default: undefined,
      requires: [is('PLAINCACHE_TLS', 'true')],
      help: 'PEM file with the private key of that certificate.',
    }),
    setting({
      field: 'plaincacheTlsSkipHostnameVerification',
      name: 'PLAINCACHE_TLS_SKIP_HOSTNAME_VERIFICATION',
      alias: 'MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION',
      type: boolean,
      default: false,
      requires: [is('PLAINCACHE_TLS', 'true')],
      help: 'Verifies the certificate of a server, but not the host name in it.',
    }),
  ],
});
