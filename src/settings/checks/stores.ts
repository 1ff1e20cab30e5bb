import type { Settings } from '../settings';
import { splitList } from '../values/lists';
import { isSocketPath, isStoreAddress } from '../values/addresses';
import { check } from './check';

/** What is wrong with an address list of a key-value store. It may hold a password, so that it is not quoted. */
function addressProblem(type: Settings['kvstoreType'], url: string): string | undefined {
  if (type === 'single') {
    return isStoreAddress(url) ? undefined : 'must be one host:port, one socket path, or one redis:// or rediss:// URL';
  }
  const items = splitList(url);
  if (items.includes('')) return 'has an empty item';
  if (type === 'sentinel' && items.length < 2) return 'must be the name of the master, then at least one sentinel';
  const servers = type === 'sentinel' ? items.slice(1) : items;
  const bad = servers.find((server) => isSocketPath(server) || !isStoreAddress(server));
  if (bad === undefined) return undefined;
  return `must have host:port as item ${items.lastIndexOf(bad) + 1}`;
}

export const storeChecks = [
  check(['backendType', 'kvstoreUrl', 'kvstoreType'], ({ settings, nameOf }) => {
    const { backendType, kvstoreUrl: url, kvstoreType: type } = settings;
    if (backendType !== 'kvstore') return undefined;
    if (url === undefined) return `${nameOf('backendType')}=kvstore needs ${nameOf('kvstoreUrl')}.`;
    const problem = addressProblem(type, url);
    return problem && `${nameOf('kvstoreUrl')} ${problem}, since ${nameOf('kvstoreType')} is ${type}.`;
  }),
  check(['backendType', 'kvstorePersecond', 'kvstorePersecondUrl', 'kvstorePersecondType'], ({ settings, nameOf }) => {
    const { backendType, kvstorePersecond, kvstorePersecondUrl: url, kvstorePersecondType: type } = settings;
    if (backendType !== 'kvstore' || !kvstorePersecond) return undefined;
    if (url === undefined) return `${nameOf('kvstorePersecond')} needs ${nameOf('kvstorePersecondUrl')}.`;
    const problem = addressProblem(type, url);
    return (
      problem && `${nameOf('kvstorePersecondUrl')} ${problem}, since ${nameOf('kvstorePersecondType')} is ${type}.`
    );
  }),
  check(['backendType', 'plaincacheHostPort', 'plaincacheSrv'], ({ settings, nameOf }) =>
    settings.backendType === 'plaincache' &&
    settings.plaincacheHostPort.length === 0 &&
    settings.plaincacheSrv === undefined
      ? `${nameOf('backendType')}=plaincache needs ${nameOf('plaincacheHostPort')} or ${nameOf('plaincacheSrv')}.`
      : undefined,
  ),
  check(['plaincacheHostPort', 'plaincacheSrv'], ({ settings, nameOf }) =>
    settings.plaincacheHostPort.length > 0 && settings.plaincacheSrv !== undefined
      ? `${nameOf('plaincacheHostPort')} and ${nameOf('plaincacheSrv')} both name the servers; keep one of them.`
      : undefined,
  ),
];
