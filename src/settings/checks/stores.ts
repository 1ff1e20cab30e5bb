import type { InstancePrefix } from '../table/kvstore-instance';
import { splitList } from '../values/lists';
import { isSocketPath, isStoreAddress } from '../values/addresses';
import { check } from './check';

const ALLOWED_ADDRESSES = {
  single: 'one host:port, one socket path, or one redis:// or rediss:// URL',
  sentinel: 'the name of the master and the host:port or URL of at least one sentinel, separated by commas',
  cluster: 'the host:port or URL of at least one node, separated by commas',
} as const;

type StoreType = keyof typeof ALLOWED_ADDRESSES;

/** What is wrong with the address of an instance. The address may contain a password and is not quoted. */
function addressProblem(type: StoreType, url: string): string | undefined {
  if (type === 'single') return isStoreAddress(url) ? undefined : 'it is not the address of one server';
  const items = splitList(url);
  const empty = items.indexOf('');
  if (empty >= 0) return `item ${empty + 1} is empty`;
  if (type === 'sentinel' && items.length < 2) return 'it contains no sentinel';
  const servers = type === 'sentinel' ? items.slice(1) : items;
  const invalid = servers.find((server) => isSocketPath(server) || !isStoreAddress(server));
  return invalid === undefined ? undefined : `item ${items.lastIndexOf(invalid) + 1} is not a host:port or URL`;
}

/** Checks the address of an instance of the key-value store; `requiredBy` is the setting that makes the service use it. */
function addressCheck(instance: InstancePrefix, requiredBy: 'backendType' | 'kvstorePersecond') {
  const urlField = `${instance}Url` as const;
  const typeField = `${instance}Type` as const;
  return check(['backendType', requiredBy, urlField, typeField], ({ settings, nameOf }) => {
    if (settings.backendType !== 'kvstore' || settings[requiredBy] === false) return undefined;
    const url = settings[urlField];
    const type = settings[typeField];
    if (url === undefined) {
      return (
        `${nameOf(requiredBy)} is ${settings[requiredBy]}, but ${nameOf(urlField)} is not set; set it to the address of ` +
        'Redis or Valkey.'
      );
    }
    const problem = addressProblem(type, url);
    if (problem === undefined) return undefined;
    return `${nameOf(urlField)} is invalid with ${nameOf(typeField)}=${type}: ${problem}; allowed: ${ALLOWED_ADDRESSES[type]}.`;
  });
}

export const storeChecks = [
  addressCheck('kvstore', 'backendType'),
  addressCheck('kvstorePersecond', 'kvstorePersecond'),
  check(['backendType', 'plaincacheHostPort', 'plaincacheSrv'], ({ settings, nameOf }) =>
    settings.backendType === 'plaincache' &&
    settings.plaincacheHostPort.length === 0 &&
    settings.plaincacheSrv === undefined
      ? `${nameOf('backendType')} is plaincache, but neither ${nameOf('plaincacheHostPort')} nor ${nameOf('plaincacheSrv')} ` +
        'is set; set one of them to the memcached servers.'
      : undefined,
  ),
  check(['backendType', 'plaincacheHostPort', 'plaincacheSrv'], ({ settings, nameOf }) =>
    settings.backendType === 'plaincache' &&
    settings.plaincacheHostPort.length > 0 &&
    settings.plaincacheSrv !== undefined
      ? `${nameOf('plaincacheHostPort')} and ${nameOf('plaincacheSrv')} are both set; remove one of them.`
      : undefined,
  ),
];
