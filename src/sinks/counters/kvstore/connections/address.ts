import { type Server, parseServer } from '../../server-address';

/** Credentials of a connection. Never logged, never part of an error. */
export interface Credentials {
  readonly username: string | undefined;
  readonly password: string;
}

/** Parses `password` or `user:password`, split at the first colon (KVSTORE_AUTH). */
export function parseCredentials(text: string): Credentials {
  const colon = text.indexOf(':');
  if (colon < 0) return { username: undefined, password: text };
  return { username: text.slice(0, colon) || undefined, password: text.slice(colon + 1) };
}

/** One item of an address list: the server, and the options that a URL carries. */
export interface Address {
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
export function parseAddress(text: string): Address {
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
