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

/** Where a server listens. */
export type Server =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly family: 0 | 4 | 6 }
  | { readonly kind: 'unix'; readonly path: string };

/** One item of an address list: the server, and the options that a URL carries. */
export interface Address {
  readonly server: Server;
  readonly credentials: Credentials | undefined;
  readonly db: number | undefined;
  /** `rediss`, `redis`, or undefined where the item has no scheme. */
  readonly scheme: 'redis' | 'rediss' | undefined;
}

const DEFAULT_PORT = 6379;
const SOCKET_PATH = /^(?:unix:)?(?:\/\/)?(?=\/)/;

/** A server's name in logs, which also identifies nodes: `host:port`, `[v6]:port`, or the socket's path. */
export function nameOf(server: Server): string {
  if (server.kind === 'unix') return server.path;
  return hostPort(server.host, server.port);
}

export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Parses `host:port`, the path of a Unix socket, or a `redis://` or `rediss://` URL with user, password and database.
 *
 * @throws Error whose message continues "the address …"; it never quotes the address, which may hold a password
 */
export function parseAddress(text: string): Address {
  if (/^rediss?:\/\//i.test(text)) return parseUrl(text);
  const plain = { credentials: undefined, db: undefined, scheme: undefined };
  if (SOCKET_PATH.test(text)) return { server: { kind: 'unix', path: text.replace(SOCKET_PATH, '') }, ...plain };
  return { server: parseHostPort(text), ...plain };
}

/** Parses `host:port` and `[v6]:port`. */
export function parseHostPort(text: string): Server {
  const match = /^(?:\[([^\]]+)\]|([^:/@\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535) throw new Error('is not host:port');
  return { kind: 'tcp', host: match[1] ?? (match[2] as string), port, family: 0 };
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
