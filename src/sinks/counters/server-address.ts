import type { NetConnectOpts } from 'node:net';

/** Where a server listens. */
export type Server =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly family: 0 | 4 | 6 }
  | { readonly kind: 'unix'; readonly path: string };

const SOCKET_PATH = /^(?:unix:)?(?:\/\/)?(?=\/)/;

/** A server's name in logs, which also identifies nodes: `host:port`, `[v6]:port`, or the socket's path. */
export function nameOf(server: Server): string {
  if (server.kind === 'unix') return server.path;
  return hostPort(server.host, server.port);
}

export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What Node connects to the server with. */
export function connectOptions(server: Server): NetConnectOpts {
  return server.kind === 'unix' ? { path: server.path } : server;
}

/**
 * Parses `host:port`, `[v6]:port` or the path of a Unix socket.
 *
 * @throws Error whose message continues "the address …"; it never quotes the address
 */
export function parseServer(text: string): Server {
  return SOCKET_PATH.test(text) ? { kind: 'unix', path: text.replace(SOCKET_PATH, '') } : parseHostPort(text);
}

/** Parses `host:port` and `[v6]:port`. */
export function parseHostPort(text: string): Server {
  const match = /^(?:\[([^\]]+)\]|([^:/@\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535) throw new Error('is not host:port');
  return { kind: 'tcp', host: match[1] ?? (match[2] as string), port, family: 0 };
}
