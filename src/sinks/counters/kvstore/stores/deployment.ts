import { isIP } from 'node:net';
import { messageOf } from '../../../../text/thrown';
import { type Server, nameOf } from '../../server-address';
import { type Address, type Credentials, parseAddress, parseCredentials } from '../connections/address';
import type { InstanceOptions } from '../connections/options';

/** The servers of an instance, and how to connect to them. */
export interface Deployment {
  readonly servers: StoreServers;
  /** For the servers that hold the counters. */
  readonly credentials: Credentials | undefined;
  readonly db: number;
  readonly tls: boolean;
}

export type StoreServers =
  | { readonly kind: 'single'; readonly server: Server }
  | {
      readonly kind: 'sentinel';
      readonly masterName: string;
      readonly sentinels: readonly Server[];
      readonly sentinelCredentials: Credentials | undefined;
    }
  | { readonly kind: 'cluster'; readonly seeds: readonly Server[] };

/** A deployment for log lines, without credentials: `single localhost:6379`, `cluster node-1:6379,node-2:6379 over TLS`. */
export function describeDeployment({ servers, tls }: Deployment): string {
  return `${servers.kind} ${describeServers(servers)}${tls ? ' over TLS' : ''}`;
}

/** The credentials for sentinels; undefined without them. */
export function sentinelCredentials({ servers }: Deployment): Credentials | undefined {
  return servers.kind === 'sentinel' ? servers.sentinelCredentials : undefined;
}

function describeServers(servers: StoreServers): string {
  if (servers.kind === 'single') return nameOf(servers.server);
  if (servers.kind === 'cluster') return servers.seeds.map(nameOf).join();
  return `${servers.masterName} at ${servers.sentinels.map(nameOf).join()}`;
}

/**
 * Reads the addresses and credentials of an instance: a single server as one address, sentinels as the name of the master and
 * at least one address, a cluster as at least one address, separated by commas. KVSTORE_AUTH and KVSTORE_SENTINEL_AUTH take
 * precedence over credentials in addresses.
 *
 * @throws Error that names the setting and the problem, without quoting an address, which may hold a password
 */
export function readDeployment(options: InstanceOptions): Deployment {
  const { url = '' } = options;
  const setting = options.variables.url;
  const auth = options.auth === undefined ? undefined : parseCredentials(options.auth);
  if (options.type === 'single') {
    const address = readAddress(url.trim(), setting, 'the address');
    return {
      servers: { kind: 'single', server: withSocketType(address.server, options) },
      credentials: auth ?? address.credentials,
      db: address.db ?? 0,
      tls: options.tls || address.scheme === 'rediss',
    };
  }
  const items = url.split(',').map((item) => item.trim());
  if (options.type === 'cluster') return readCluster(new AddressList(items, setting, 1), options.tls, auth);
  const [masterName = '', ...sentinels] = items;
  if (masterName === '' || sentinels.length === 0) {
    throw new Error(`${setting} must be the name of the master, then at least one sentinel as host:port`);
  }
  const addresses = new AddressList(sentinels, setting, 2);
  const sentinelAuth = options.sentinelAuth === undefined ? undefined : parseCredentials(options.sentinelAuth);
  return {
    servers: {
      kind: 'sentinel',
      masterName,
      sentinels: addresses.servers,
      sentinelCredentials: sentinelAuth ?? addresses.common('credentials', 'credentials'),
    },
    credentials: auth,
    db: addresses.common('db', 'databases') ?? 0,
    tls: addresses.common('scheme', 'schemes') === 'rediss' || options.tls,
  };
}

/**
 * The deployment with the credentials as they are now.
 *
 * @param atStart the deployment of these options
 */
export function currentDeployment(options: InstanceOptions, atStart: Deployment): () => Deployment {
  const { current } = options;
  return current === undefined ? () => atStart : () => readDeployment({ ...options, ...current() });
}

/** Why an address cannot replace that of the options while the service runs; undefined when only the credentials differ. */
export function replacementProblem(options: InstanceOptions, url: string | undefined): string | undefined {
  try {
    const [before, now] = [readDeployment(options), readDeployment({ ...options, url })];
    if (before.db === now.db && describeDeployment(before) === describeDeployment(now)) return undefined;
    return 'more than its credentials differs from the address at start; other servers need a restart';
  } catch (error) {
    return messageOf(error);
  }
}

function readCluster(addresses: AddressList, tls: boolean, auth: Credentials | undefined): Deployment {
  const { setting, servers: seeds } = addresses;
  if ((addresses.common('db', 'databases') ?? 0) !== 0) {
    throw new Error(`${setting} names a database; a cluster has only database 0`);
  }
  return {
    servers: { kind: 'cluster', seeds },
    credentials: auth ?? addresses.common('credentials', 'credentials'),
    db: 0,
    tls: addresses.common('scheme', 'schemes') === 'rediss' || tls,
  };
}

/** The addresses of a setting that lists several servers. */
class AddressList {
  readonly setting: string;
  readonly #addresses: readonly Address[];

  /** @param firstItem the number of the first item in the setting, for messages */
  constructor(items: readonly string[], setting: string, firstItem: number) {
    this.setting = setting;
    this.#addresses = items.map((item, index) => {
      const what = `item ${index + firstItem}`;
      const address = readAddress(item, setting, what);
      if (address.server.kind === 'unix')
        throw new Error(`${setting}: ${what} is a socket path; host:port is required`);
      return address;
    });
  }

  get servers(): readonly Server[] {
    return this.#addresses.map(({ server }) => server);
  }

  /**
   * The option that the items have in common; items may leave it out.
   *
   * @throws Error when items differ
   */
  common<Option extends 'credentials' | 'db' | 'scheme'>(option: Option, plural: string): Address[Option] {
    const values = this.#addresses.map((address) => address[option]).filter((value) => value !== undefined);
    if (new Set(values.map((value) => JSON.stringify(value))).size > 1) {
      throw new Error(`${this.setting} has items with different ${plural}; all servers of the list must use the same`);
    }
    return values[0];
  }
}

function readAddress(text: string, setting: string, what: string): Address {
  try {
    return parseAddress(text);
  } catch (error) {
    throw new Error(`${setting}: ${what} ${messageOf(error)}`, { cause: error });
  }
}

function withSocketType(server: Server, { socketType: type, variables }: InstanceOptions): Server {
  if (type === undefined) return server;
  if ((type === 'unix') !== (server.kind === 'unix')) {
    const actual = server.kind === 'unix' ? 'a socket path' : 'host and port';
    throw new Error(`${variables.socketType} is ${type}, but ${variables.url} is ${actual}`);
  }
  if (server.kind === 'unix' || type === 'tcp' || type === 'unix') return server;
  const family = type === 'tcp4' ? 4 : 6;
  // Node resolves only names by the family, and connects to an address of the other one.
  const actual = isIP(server.host);
  if (actual !== 0 && actual !== family) {
    throw new Error(`${variables.socketType} is ${type}, but ${variables.url} is an IPv${actual} address`);
  }
  return { ...server, family };
}
