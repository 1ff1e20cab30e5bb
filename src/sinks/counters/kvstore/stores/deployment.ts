import { type Address, type Credentials, type Server, parseAddress, parseCredentials } from '../connections/address';
import type { InstanceOptions } from '../connections/options';
import { messageOf } from '../../../../text/thrown';

/** Where the servers of an instance are, and how they are spoken to. */
export interface Deployment {
  readonly place: Place;
  /** For the servers that hold the counters. */
  readonly credentials: Credentials | undefined;
  readonly db: number;
  readonly tls: boolean;
}

export type Place =
  | { readonly kind: 'single'; readonly server: Server }
  | {
      readonly kind: 'sentinel';
      readonly masterName: string;
      readonly sentinels: readonly Server[];
      readonly sentinelCredentials: Credentials | undefined;
    }
  | { readonly kind: 'cluster'; readonly seeds: readonly Server[] };

/**
 * Reads what the settings say of one instance's place (document 1, section 2.4, URL formats).
 *
 * @param prefix how the instance's settings begin, for messages: KVSTORE or KVSTORE_PERSECOND
 * @throws Error naming the setting and what is wrong with it, without quoting an address, which may hold a password
 */
export function readDeployment(options: InstanceOptions, prefix: string): Deployment {
  const setting = `${prefix}_URL`;
  const auth = options.auth === undefined ? undefined : parseCredentials(options.auth);
  if (options.type === 'single') {
    const address = readItem(options.url.trim(), setting, 'the address');
    return {
      place: { kind: 'single', server: withSocketType(address.server, options.socketType, prefix) },
      credentials: auth ?? address.credentials,
      db: address.db ?? 0,
      tls: readTls([address], options.tls, setting),
    };
  }
  const items = options.url.split(',').map((item) => item.trim());
  return options.type === 'sentinel'
    ? readSentinels(items, options, auth, setting)
    : readCluster(items, options, auth, setting);
}

function readSentinels(
  [masterName = '', ...items]: readonly string[],
  options: InstanceOptions,
  credentials: Credentials | undefined,
  setting: string,
): Deployment {
  if (masterName === '' || items.length === 0) {
    throw new Error(`${setting} must be the name of the master, then at least one sentinel as host:port`);
  }
  const addresses = readList(items, setting, 2);
  const sentinelAuth = options.sentinelAuth === undefined ? undefined : parseCredentials(options.sentinelAuth);
  return {
    place: {
      kind: 'sentinel',
      masterName,
      sentinels: addresses.map(({ server }) => server),
      sentinelCredentials: sentinelAuth ?? shared(addresses, ({ credentials: found }) => found, setting, 'credentials'),
    },
    credentials,
    db: shared(addresses, ({ db }) => db, setting, 'databases') ?? 0,
    tls: readTls(addresses, options.tls, setting),
  };
}

function readCluster(
  items: readonly string[],
  options: InstanceOptions,
  auth: Credentials | undefined,
  setting: string,
): Deployment {
  const addresses = readList(items, setting, 1);
  if ((shared(addresses, ({ db }) => db, setting, 'databases') ?? 0) !== 0) {
    throw new Error(`${setting} names a database; a cluster has only database 0`);
  }
  return {
    place: { kind: 'cluster', seeds: addresses.map(({ server }) => server) },
    credentials: auth ?? shared(addresses, ({ credentials }) => credentials, setting, 'credentials'),
    db: 0,
    tls: readTls(addresses, options.tls, setting),
  };
}

function readList(items: readonly string[], setting: string, first: number): readonly Address[] {
  return items.map((item, index) => {
    const what = `item ${index + first}`;
    const address = readItem(item, setting, what);
    if (address.server.kind === 'unix') throw new Error(`${setting}: ${what} is a socket path where host:port must be`);
    return address;
  });
}

function readItem(text: string, setting: string, what: string): Address {
  try {
    return parseAddress(text);
  } catch (error) {
    throw new Error(`${setting}: ${what} ${messageOf(error)}`, { cause: error });
  }
}

/** What the items of a list say in one voice; all of them are one store. */
function shared<T>(
  addresses: readonly Address[],
  read: (address: Address) => T | undefined,
  setting: string,
  what: string,
): T | undefined {
  const said = addresses.map(read).filter((value) => value !== undefined);
  if (new Set(said.map((value) => JSON.stringify(value))).size > 1) {
    throw new Error(`${setting} has items with different ${what}; all servers of the list are spoken to alike`);
  }
  return said[0];
}

function readTls(addresses: readonly Address[], isOn: boolean, setting: string): boolean {
  const scheme = shared(addresses, (address) => address.scheme, setting, 'schemes');
  return isOn || scheme === 'rediss';
}

function withSocketType(server: Server, type: InstanceOptions['socketType'], prefix: string): Server {
  if (type === undefined) return server;
  if ((type === 'unix') !== (server.kind === 'unix')) {
    const is = server.kind === 'unix' ? 'a socket path' : 'host and port';
    throw new Error(`${prefix}_SOCKET_TYPE is ${type}, but ${prefix}_URL is ${is}`);
  }
  if (server.kind === 'unix' || type === 'tcp' || type === 'unix') return server;
  return { ...server, family: type === 'tcp4' ? 4 : 6 };
}
