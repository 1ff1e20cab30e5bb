import { planned } from './planned';
import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { duration } from '../values/duration';
import { list } from '../values/lists';
import { isServer, isSocketPath } from '../values/addresses';
import { filePath, textLike } from '../values/text';
import { wholeNumber } from '../values/numbers';

export const plaincacheSettings = group({
  title: 'Memcache-type store (memcached)',
  note: 'In force with BACKEND_TYPE=plaincache. Every instance needs the same servers in the same order.',
  plannedFeature: planned.plaincache,
  settings: [
    setting({
      field: 'plaincacheHostPort',
      name: 'PLAINCACHE_HOST_PORT',
      alias: 'MEMCACHE_HOST_PORT',
      type: list('host:port or socket path', (item) => isServer(item) || isSocketPath(item)),
      default: [],
      help: 'Servers that the keys are spread over.',
    }),
    setting({
      field: 'plaincacheSrv',
      name: 'PLAINCACHE_SRV',
      alias: 'MEMCACHE_SRV',
      type: textLike(/^_[^.\s]+\._[^.\s]+\.\S+$/, '_service._protocol.name'),
      default: undefined,
      help: 'DNS record that names the servers, in place of PLAINCACHE_HOST_PORT.',
    }),
    setting({
      field: 'plaincacheSrvRefresh',
      name: 'PLAINCACHE_SRV_REFRESH',
      alias: 'MEMCACHE_SRV_REFRESH',
      type: duration('0 or more'),
      default: 0,
      help: 'Time between two look-ups of that record; 0: only at start.',
    }),
    setting({
      field: 'plaincacheMaxIdleConns',
      name: 'PLAINCACHE_MAX_IDLE_CONNS',
      alias: 'MEMCACHE_MAX_IDLE_CONNS',
      type: wholeNumber({ min: 1 }),
      default: 2,
      help: 'Connections kept to each server.',
    }),
    setting({
      field: 'plaincacheTls',
      name: 'PLAINCACHE_TLS',
      alias: 'MEMCACHE_TLS',
      type: boolean,
      default: false,
      help: 'Speaks TLS with the servers.',
    }),
    setting({
      field: 'plaincacheTlsCacert',
      name: 'PLAINCACHE_TLS_CACERT',
      alias: 'MEMCACHE_TLS_CACERT',
      type: filePath,
      default: undefined,
      help: "CA of the servers, PEM; trusted beside the system's.",
    }),
    setting({
      field: 'plaincacheTlsClientCert',
      name: 'PLAINCACHE_TLS_CLIENT_CERT',
      alias: 'MEMCACHE_TLS_CLIENT_CERT',
      type: filePath,
      default: undefined,
      help: 'Certificate shown to the servers, PEM.',
    }),
    setting({
      field: 'plaincacheTlsClientKey',
      name: 'PLAINCACHE_TLS_CLIENT_KEY',
      alias: 'MEMCACHE_TLS_CLIENT_KEY',
      type: filePath,
      default: undefined,
      help: 'Private key of that certificate, PEM.',
    }),
    setting({
      field: 'plaincacheTlsSkipHostnameVerification',
      name: 'PLAINCACHE_TLS_SKIP_HOSTNAME_VERIFICATION',
      alias: 'MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION',
      type: boolean,
      default: false,
      help: "Checks a server's certificate, but not the name in it.",
    }),
  ],
});
