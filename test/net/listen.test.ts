import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../src/net/listen';

const LOOPBACK = '127.0.0.1';
const ANSWER = 'weir';
const servers: net.Server[] = [];

/** A server that sends a few bytes on every connection. */
function newServer(): net.Server {
  const server = net.createServer((socket) => socket.on('error', () => {}).end(ANSWER));
  servers.push(server);
  return server;
}

/** Whether a server of {@link newServer} is reached. */
async function isReached(at: net.NetConnectOpts): Promise<boolean> {
  const socket = net.connect(at).on('error', () => {});
  let received = '';
  socket.on('data', (chunk) => {
    received += String(chunk);
  });
  try {
    await once(socket, 'end');
  } catch {
    return false;
  }
  return received === ANSWER;
}

async function hasIpv6(): Promise<boolean> {
  const probe = net.createServer();
  probe.listen({ host: '::1', port: 0 });
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  return true;
}

/** Makes `server.listen` fail with these codes, once for each, before it works. Returns the options of each call. */
function failing(server: net.Server, ...codes: string[]): net.ListenOptions[] {
  const calls: net.ListenOptions[] = [];
  const original = server.listen.bind(server) as (options: net.ListenOptions, onListening: () => void) => net.Server;
  server.listen = ((options: net.ListenOptions, onListening: () => void) => {
    calls.push(options);
    const code = codes.shift();
    if (code === undefined) return original(options, onListening);
    queueMicrotask(() => server.emit('error', Object.assign(new Error(`listen ${code}`), { code })));
    return server;
  }) as net.Server['listen'];
  return calls;
}

afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

describe('listen, with a TCP address', () => {
  it.each(['0.0.0.0', ''])('with host "%s" serves IPv4 and, if the system has it, IPv6', async (host) => {
    const { port } = await listen(newServer(), { host, port: 0 });

    expect(await isReached({ host: LOOPBACK, port })).toBe(true);
    expect(await isReached({ host: '::1', port })).toBe(await hasIpv6());
  });

  it('listens only on that address', async () => {
    const { address, port } = await listen(newServer(), { host: LOOPBACK, port: 0 });

    expect(address).toBe(LOOPBACK);
    expect(await isReached({ host: LOOPBACK, port })).toBe(true);
    expect(await isReached({ host: '::1', port })).toBe(false);
  });

  it.each(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'])('falls back to IPv4 when :: fails with %s', async (code) => {
    const server = newServer();
    const calls = failing(server, code);
    const { address, port } = await listen(server, { host: '0.0.0.0', port: 0 });

    expect(calls.map(({ host }) => host)).toEqual(['::', '0.0.0.0']);
    expect(address).toBe('0.0.0.0');
    expect(await isReached({ host: LOOPBACK, port })).toBe(true);
  });

  it('passes the backlog to the server', async () => {
    const server = newServer();
    const calls = failing(server);
    await listen(server, { host: LOOPBACK, port: 0 }, 7);

    expect(calls).toEqual([{ host: LOOPBACK, port: 0, backlog: 7 }]);
  });

  it('rejects a port that is in use', async () => {
    const { port } = await listen(newServer(), { host: LOOPBACK, port: 0 });

    await expect(listen(newServer(), { host: LOOPBACK, port })).rejects.toThrow(
      `cannot listen on ${LOOPBACK}:${port}: another process is already listening there (EADDRINUSE)`,
    );
  });

  it('rejects a port that is in use on one of all addresses', async () => {
    const { port } = await listen(newServer(), { host: LOOPBACK, port: 0 });

    await expect(listen(newServer(), { host: '0.0.0.0', port })).rejects.toThrow(
      `cannot listen on 0.0.0.0:${port}: another process is already listening there (EADDRINUSE)`,
    );
  });

  it('rejects an address that the machine does not have', async () => {
    await expect(listen(newServer(), { host: '192.0.2.1', port: 0 })).rejects.toThrow(
      'cannot listen on 192.0.2.1:0: this machine has no such address (EADDRNOTAVAIL)',
    );
  });

  it('rejects a port that the process has no permission for', async () => {
    const server = newServer();
    failing(server, 'EACCES');

    await expect(listen(server, { host: '::1', port: 80 })).rejects.toThrow(
      'cannot listen on [::1]:80: permission denied, ports below 1024 require a privilege (EACCES)',
    );
  });

  it('rejects with the message and the cause of an unexpected error', async () => {
    const server = newServer();
    failing(server, 'EMFILE');

    await expect(listen(server, { host: LOOPBACK, port: 0 })).rejects.toMatchObject({
      message: `cannot listen on ${LOOPBACK}:0: listen EMFILE`,
      cause: { code: 'EMFILE' },
    });
  });
});

describe('listen, with the path of a Unix socket', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-listen-'));
  const path = join(folder, 'socket');
  afterAll(() => rmSync(folder, { recursive: true }));

  it('serves on the socket, and closing the server removes it', async () => {
    const server = newServer();
    expect(await listen(server, { path })).toBe(path);
    expect(await isReached({ path })).toBe(true);
    server.close();
    await once(server, 'close');

    expect(existsSync(path)).toBe(false);
  });

  it('replaces the socket of a dead process', async () => {
    const leave = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', leave]);
    expect(existsSync(path)).toBe(true);
    await listen(newServer(), { path });

    expect(await isReached({ path })).toBe(true);
  });

  it('rejects a socket on which a process is listening, and leaves it alone', async () => {
    await listen(newServer(), { path });

    await expect(listen(newServer(), { path })).rejects.toThrow(
      `cannot listen on ${path}: another process is already listening there (EADDRINUSE)`,
    );
    expect(await isReached({ path })).toBe(true);
  });

  it('rejects a path that is a file but not a socket, and leaves it alone', async () => {
    writeFileSync(path, 'precious');

    await expect(listen(newServer(), { path })).rejects.toThrow(
      `cannot listen on ${path}: the path is a file that is not a socket`,
    );
    expect(existsSync(path)).toBe(true);
    rmSync(path);
  });

  it('rejects a path in a folder that does not exist', async () => {
    const missing = join(folder, 'missing', 'socket');

    await expect(listen(newServer(), { path: missing })).rejects.toThrow(
      `cannot listen on ${missing}: permission denied, or the folder does not exist (EACCES)`,
    );
  });

  it('rejects a path that the process has no permission for', async () => {
    const server = newServer();
    failing(server, 'EACCES');

    await expect(listen(server, { path })).rejects.toThrow(`cannot listen on ${path}: permission denied`);
  });
});
