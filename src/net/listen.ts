import { lstatSync, unlinkSync } from 'node:fs';
import net from 'node:net';
import { formatHostPort } from '../text/host-port';
import { codeOf, messageOf } from '../text/thrown';

/** A TCP address to listen on. */
export interface TcpAddress {
  /** A host name or an IP address. `0.0.0.0` and the empty string stand for all addresses, those of IPv6 included. */
  readonly host: string;
  /** 0 lets the system choose a port. */
  readonly port: number;
  /**
   * The file descriptor of a TCP socket that another process has opened and this one has inherited; it is used instead.
   */
  readonly inherited?: number | undefined;
  /** The names of the settings that it is from, for messages. */
  readonly settings?: string;
}

/** Where to listen: a TCP address or the path of a Unix socket. */
export type ListenAddress = TcpAddress | (Pick<TcpAddress, 'settings'> & { readonly path: string });

const ANY_ADDRESS = new Set(['', '0.0.0.0']);
/** The codes with which a system without IPv6 rejects `::`. */
const NO_IPV6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL']);

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process is already listening there',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'permission denied',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be resolved',
};

/**
 * Makes a server listen and resolves with its address, in which the port is the one that the system chose. All IPv4
 * addresses mean all IPv6 addresses too, unless the system has no IPv6. A Unix socket file that a dead process left is
 * replaced.
 *
 * @param backlog how many connections may wait to be accepted; Node's default is 511.
 * @throws an Error whose message names the address and the reason in one human-readable sentence.
 */
export function listen(server: net.Server, at: TcpAddress, backlog?: number): Promise<net.AddressInfo>;
export function listen(server: net.Server, at: ListenAddress, backlog?: number): Promise<net.AddressInfo | string>;
export async function listen(
  server: net.Server,
  at: ListenAddress,
  backlog?: number,
): Promise<net.AddressInfo | string> {
  try {
    if ('path' in at) await bindSocket(server, at.path, backlog);
    else if (at.inherited !== undefined) await bindInherited(server, at.inherited, backlog);
    else await bindTcp(server, at, backlog);
  } catch (error) {
    throw explained(at, error);
  }
  return server.address()!;
}

async function bindTcp(server: net.Server, { host, port }: TcpAddress, backlog: number | undefined): Promise<void> {
  if (!ANY_ADDRESS.has(host)) return bind(server, { host, port, backlog });
  try {
    await bind(server, { host: '::', port, backlog });
  } catch (error) {
    if (!NO_IPV6.has(codeOf(error))) throw error;
    await bind(server, { host: '0.0.0.0', port, backlog });
  }
}

async function bindInherited(server: net.Server, fd: number, backlog: number | undefined): Promise<void> {
  await started(server, () => server.listen({ fd }, backlog));
  const address = server.address();
  if (address !== null && typeof address === 'object') return;
  server.close();
  throw new Error('it is not a TCP socket');
}

async function bindSocket(server: net.Server, path: string, backlog: number | undefined): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined) {
    if (!found.isSocket()) throw new Error('the path is a file that is not a socket');
    if (await isServed(path)) throw Object.assign(new Error('the socket is served'), { code: 'EADDRINUSE' });
    unlinkSync(path);
  }
  await bind(server, { path, backlog });
}

/** Whether a process accepts connections on a Unix socket. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => resolve(!['ECONNREFUSED', 'ENOENT'].includes(codeOf(error))));
  });
}

function bind(server: net.Server, options: net.ListenOptions): Promise<void> {
  return started(server, () => server.listen(options));
}

function started(server: net.Server, start: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    start();
  });
}

function explained(at: ListenAddress, cause: unknown): Error {
  const code = codeOf(cause);
  const reason = REASONS[code];
  if (reason === undefined) return new Error(`cannot listen on ${nameOf(at)}: ${messageOf(cause)}`, { cause });
  const hint = code === 'EACCES' ? hintOfPermission(at) : '';
  return new Error(`cannot listen on ${nameOf(at)}: ${reason}${hint} (${code})`, { cause });
}

/** For a Unix socket, Node reports a missing folder as EACCES too. */
function hintOfPermission(at: ListenAddress): string {
  return 'path' in at ? ', or the folder does not exist' : ', ports below 1024 require a privilege';
}

function nameOf(at: ListenAddress): string {
  const settings = at.settings === undefined ? '' : ` (${at.settings})`;
  if ('path' in at) return `${at.path}${settings}`;
  if (at.inherited !== undefined) return `the inherited socket with file descriptor ${at.inherited}`;
  return `${formatHostPort(at.host, at.port)}${settings}`;
}
