import { lstatSync, unlinkSync } from 'node:fs';
import net from 'node:net';

/** Where to listen: a TCP port (0 for one that the system picks), or a Unix socket. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly path: string };

const ANY_IPV4 = new Set(['', '0.0.0.0']);
/** What a system without IPv6 says to `::`. */
const NO_IPV6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL']);
const BACKLOG = 4_096;

function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  return codes.has((error as NodeJS.ErrnoException).code ?? '');
}

function bind(server: net.Server, options: net.ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ backlog: BACKLOG, ...options }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    );
  });
}

/** A socket file that a process left behind is in the way of its successor, and of nobody else. */
async function makeWay(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error(`cannot listen on ${path}: a file that is no socket is there`);
  if (await isAnswered(path)) throw new Error(`cannot listen on ${path}: another process listens there`);
  unlinkSync(path);
}

/** Lets a server listen. An address of all IPv4 interfaces means those of IPv6 too, where there are any. */
export async function listen(server: net.Server, address: ListenAddress): Promise<void> {
  if ('path' in address) {
    await makeWay(address.path);
    return bind(server, { path: address.path });
  }
  const { host, port } = address;
  if (!ANY_IPV4.has(host)) return bind(server, { host, port });
  try {
    await bind(server, { host: '::', port });
  } catch (error) {
    if (!hasCode(error, NO_IPV6)) throw error;
    await bind(server, { host: '0.0.0.0', port });
  }
}
