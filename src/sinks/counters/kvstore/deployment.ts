import { isIP } from 'node:net';
import type { InstanceSettings } from '../../../settings/settings';
import type { Statistics } from '../../../statistics/statistics';
import type { Timing } from '../../../streams/deadline';
import type { ServerStates } from '../../../streams/server-views';
import type { Log } from '../../../log/log';
import { messageOf } from '../../../text/thrown';
import { type Server, nameOf, parseServer } from '../server-address';
import type { StoreTlsFiles } from '../tls-material';

/** How to connect to one instance of the store. */
export interface InstanceOptions extends Omit<InstanceSettings, 'socketType'> {
  /** Undefined: derived from the address. Used for a single server only. */
  readonly socketType: InstanceSettings['socketType'] | undefined;
  /** The variables that set these two settings, for messages. */
  readonly variables: Readonly<Record<'url' | 'socketType', string>>;
  /** The address and credentials as they are now, called for each new connection. Undefined: they do not change. */
  readonly current?: (() => InstanceSecrets) | undefined;
}

/** What may change while the service runs, because it is in files: the credentials, but not the servers. */
export type InstanceSecrets = Pick<InstanceOptions, 'url' | 'auth' | 'sentinelAuth'>;

export interface KvstoreOptions {
  readonly main: InstanceOptions;
  /** The instance that counts limits per second; undefined unless KVSTORE_PERSECOND is set. */
  readonly perSecond: InstanceOptions | undefined;
  /** Used for both instances. */
  readonly tlsFiles: StoreTlsFiles;
  /**
   * The delays between attempts to connect at the start, and how long it waits for the store, in milliseconds:
   * KVSTORE_STARTUP_…
   */
  readonly startup: Readonly<Record<'initialInterval' | 'maxInterval' | 'maxElapsedTime', number>>;
  /** KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR */
  readonly closeConnectionOnReadonlyError: boolean;
  /**
   * Whether calls do not wait for the store until KVSTORE_TIMEOUT: then no attempt to connect takes more than a second.
   */
  readonly hasDecisionTimeout?: boolean | undefined;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly expirationJitterMaxSeconds: number;
  /** Whether this process watches for servers that evict keys: of several workers, one does. */
  readonly watchesEvictions?: boolean | undefined;
  /** The channel of {@link FreedKeys}; undefined without a local cache. */
  readonly freedKeysChannel?: string | undefined;
  /** The key of {@link DueReservations}. */
  readonly dueReservationsKey: string;
  /** Unix time in microseconds for algorithms and reservations, in tests; undefined: the time of the server. */
  readonly now?: (() => number) | undefined;
  readonly scheduler: Timing;
  readonly statistics: Statistics;
  /** Makes the states of servers. */
  readonly servers: ServerStates;
  readonly log: Log;
}

/** Credentials of a connection. Never logged, never part of an error. */
export interface Credentials {
  readonly username: string | undefined;
  readonly password: string;
}

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

/**
 * A deployment for log lines, without credentials: `single localhost:6379`, `cluster node-1:6379,node-2:6379 over TLS`.
 */
export function describeDeployment({ servers, tls }: Deployment): string {
  return `${servers.kind} ${describeServers(servers)}${tls ? ' over TLS' : ''}`;
}

function describeServers(servers: StoreServers): string {
  if (servers.kind === 'single') return nameOf(servers.server);
  if (servers.kind === 'cluster') return servers.seeds.map(nameOf).join();
  return `${servers.masterName} at ${servers.sentinels.map(nameOf).join()}`;
}

/**
 * Reads the addresses and credentials of an instance: a single server as one address, sentinels as the name of the
 * master and at least one address, a cluster as at least one address, separated by commas. KVSTORE_AUTH and
 * KVSTORE_SENTINEL_AUTH take precedence over credentials in addresses.
 *
 * @throws Error that names the setting and the problem, without quoting an address, which may hold a password
 */
export function readDeployment(options: InstanceOptions): Deployment {
  const { type, url = '', auth, sentinelAuth, variables } = options;
  const items = type === 'single' ? [url.trim()] : url.split(',').map((item) => item.trim());
  const masterName = type === 'sentinel' ? items.shift() : undefined;
  if (masterName === '' || items.length === 0) {
    throw new Error(`${variables.url} must be the name of the master, then at least one sentinel as host:port`);
  }
  const firstItem = masterName === undefined ? 1 : 2;
  const addresses = items.map((item, index) => {
    return readAddress(item, variables.url, type === 'single' ? undefined : `item ${index + firstItem}`);
  });
  /** The value that the items have in common; items may leave it out. */
  function common<Option extends 'credentials' | 'db' | 'scheme'>(option: Option, plural: string): Address[Option] {
    const values = addresses.map((address) => address[option]).filter((value) => value !== undefined);
    if (new Set(values.map((value) => JSON.stringify(value))).size > 1) {
      throw new Error(`${variables.url} has items with different ${plural}; all servers of the list must use the same`);
    }
    return values[0];
  }
  const inAddresses = common('credentials', 'credentials');
  const credentials = auth === undefined ? inAddresses : parseCredentials(auth);
  const db = common('db', 'databases') ?? 0;
  const tls = common('scheme', 'schemes') === 'rediss' || options.tls;
  const servers = addresses.map(({ server }) => server);
  if (masterName !== undefined) {
    // Credentials in addresses are those of the sentinels.
    const sentinelCredentials = sentinelAuth === undefined ? inAddresses : parseCredentials(sentinelAuth);
    const sentinels = { kind: 'sentinel', masterName, sentinels: servers, sentinelCredentials } as const;
    return { servers: sentinels, credentials: auth === undefined ? undefined : credentials, db, tls };
  }
  if (type === 'single') {
    return { servers: { kind: 'single', server: withSocketType(servers[0] as Server, options) }, credentials, db, tls };
  }
  if (db !== 0) throw new Error(`${variables.url} names a database; a cluster has only database 0`);
  return { servers: { kind: 'cluster', seeds: servers }, credentials, db, tls };
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

/**
 * Why an address cannot replace that of the options while the service runs; undefined when only the credentials differ.
 */
export function replacementProblem(options: InstanceOptions, url: string | undefined): string | undefined {
  try {
    const [before, now] = [readDeployment(options), readDeployment({ ...options, url })];
    if (before.db === now.db && describeDeployment(before) === describeDeployment(now)) return undefined;
    return 'more than its credentials differs from the address at start; other servers need a restart';
  } catch (error) {
    return messageOf(error);
  }
}

/** @param item the item of a list, which has no socket paths; undefined: it is the only address */
function readAddress(text: string, setting: string, item: string | undefined): Address {
  let address: Address;
  try {
    address = parseAddress(text);
  } catch (error) {
    throw new Error(`${setting}: ${item ?? 'the address'} ${messageOf(error)}`, { cause: error });
  }
  if (item !== undefined && address.server.kind === 'unix') {
    throw new Error(`${setting}: ${item} is a socket path; host:port is required`);
  }
  return address;
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

/** Parses `password` or `user:password`, split at the first colon (KVSTORE_AUTH). */
function parseCredentials(text: string): Credentials {
  const colon = text.indexOf(':');
  if (colon < 0) return { username: undefined, password: text };
  return { username: text.slice(0, colon) || undefined, password: text.slice(colon + 1) };
}

/** One item of an address list: the server, and the options that a URL carries. */
interface Address {
  readonly server: Server;
  readonly credentials: Credentials | undefined;
  readonly db: number | undefined;
  /** `rediss`, `redis`, or undefined where the item has no scheme. */
  readonly scheme: 'redis' | 'rediss' | undefined;
}

const DEFAULT_PORT = 6379;

/**
 * Parses `host:port`, the path of a Unix socket, or a `redis://` or `rediss://` URL with user, password and database.
 *
 * @throws Error whose message continues "the address …"; it never quotes the address, which may hold a password
 */
function parseAddress(text: string): Address {
  if (/^rediss?:\/\//i.test(text)) return parseUrl(text);
  return { server: parseServer(text), credentials: undefined, db: undefined, scheme: undefined };
}

function parseUrl(text: string): Address {
  if (!URL.canParse(text)) throw new Error('is not a valid URL; percent-encode the special characters of its password');
  const url = new URL(text);
  if (url.hostname === '') throw new Error('has no host');
  const username = url.searchParams.get('username') ?? unescape(url.username);
  const password = url.searchParams.get('password') ?? unescape(url.password);
  return {
    server: {
      kind: 'tcp',
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? DEFAULT_PORT : Number(url.port),
      family: 0,
    },
    credentials: password === '' ? undefined : { username: username || undefined, password },
    db: parseDb(url.searchParams.get('db') ?? unescape(url.pathname.replace(/^\//, ''))),
    scheme: url.protocol === 'rediss:' ? 'rediss' : 'redis',
  };
}

function parseDb(text: string): number | undefined {
  if (text === '') return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new Error('has a database that is not an integer');
  return Number(text);
}

function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('has a % that is not followed by two hexadecimal digits');
  }
}
