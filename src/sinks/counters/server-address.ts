import type { NetConnectOpts } from 'node:net';
import { formatHostPort, parseServerAddress } from '../../text/host-port';

/** Where a server listens. */
export type Server =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly family: 0 | 4 | 6 }
  | { readonly kind: 'unix'; readonly path: string };

const SOCKET_PATH = /^(?:unix:)?(?:\/\/)?(?=\/)/;

/** A server's name in logs, which also identifies nodes: `host:port`, `[v6]:port`, or the socket's path. */
export function nameOf(server: Server): string {
  return server.kind === 'unix' ? server.path : formatHostPort(server.host, server.port);
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
  return SOCKET_PATH.test(text) ? { kind: 'unix', path: text.replace(SOCKET_PATH, '') } : tcpServer(text);
}

/** Parses `host:port` and `[v6]:port`. */
function tcpServer(text: string): Server {
  const address = parseServerAddress(text);
  if (address === undefined) throw new Error('is not host:port');
  return { kind: 'tcp', ...address, family: 0 };
}
