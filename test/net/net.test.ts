import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { text } from 'node:stream/consumers';
import { rootCertificates } from 'node:tls';
import { listen } from '../../src/net/listen';
import { readTrustedRoots } from '../../src/net/trusted-roots';
import { newAuthority } from '../support/data/certificates';
import { TemporaryFolder } from '../support/data/temporary-folder';

const LOOPBACK = '127.0.0.1';
const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
const ANSWER = 'weir';
const folder = new TemporaryFolder();
const path = folder.at('socket');
let servers: net.Server[] = [];
afterAll(() => folder[Symbol.dispose]());
afterEach(async () => {
  for (const server of servers) await new Promise((resolve) => server.close(resolve));
  servers = [];
});

/** A server that sends a few bytes on every connection. */
function newServer(): net.Server {
  const server = net.createServer((socket) => socket.on('error', () => {}).end(ANSWER));
  servers.push(server);
  return server;
}

/** Whether a server of {@link newServer} is reached. */
async function isReached(at: net.NetConnectOpts): Promise<boolean> {
  const received = await text(net.connect(at)).catch(() => undefined);
  return received === ANSWER;
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

describe('listen, with a TCP address,', () => {
  it.each(['0.0.0.0', ''])('with host "%s" serves IPv4 and, if the system has it, IPv6', async (host) => {
    const { port } = await listen(newServer(), { host, port: 0 });
    expect(await isReached({ host: LOOPBACK, port })).toBe(true);
    expect(await isReached({ host: '::1', port })).toBe(hasIpv6);
  });

  it('listens only on that address, with the backlog', async () => {
    const server = newServer();
    const calls = failing(server);
    const { address, port } = await listen(server, { host: LOOPBACK, port: 0 }, 7);
    expect([address, calls]).toEqual([LOOPBACK, [{ host: LOOPBACK, port: 0, backlog: 7 }]]);
    expect([await isReached({ host: LOOPBACK, port }), await isReached({ host: '::1', port })]).toEqual([true, false]);
  });

  it.each(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'])('falls back to IPv4 when :: fails with %s', async (code) => {
    const server = newServer();
    const calls = failing(server, code);
    const { address, port } = await listen(server, { host: '0.0.0.0', port: 0 });
    expect([...calls.map(({ host }) => host), address]).toEqual(['::', '0.0.0.0', '0.0.0.0']);
    expect(await isReached({ host: LOOPBACK, port })).toBe(true);
  });

  it.each([LOOPBACK, '0.0.0.0'])('rejects a port that is in use, with host %s', async (host) => {
    const { port } = await listen(newServer(), { host: LOOPBACK, port: 0 });
    const problem = `cannot listen on ${host}:${port}: another process is already listening there (EADDRINUSE)`;
    await expect(listen(newServer(), { host, port })).rejects.toThrow(problem);
    const named = listen(newServer(), { host, port, settings: 'HOST, PORT' });
    await expect(named).rejects.toThrow(`cannot listen on ${host}:${port} (HOST, PORT): another process`);
  });

  it.each([
    ['192.0.2.1', 0, 'EADDRNOTAVAIL', '192.0.2.1:0: this machine has no such address (EADDRNOTAVAIL)'],
    ['::1', 80, 'EACCES', '[::1]:80: permission denied, ports below 1024 require a privilege (EACCES)'],
    [LOOPBACK, 0, 'EMFILE', '127.0.0.1:0: listen EMFILE'],
  ])('rejects %s:%i because of %s', async (host, port, code, problem) => {
    const message = `cannot listen on ${problem}`;
    const server = newServer();
    failing(server, code);
    await expect(listen(server, { host, port })).rejects.toMatchObject({ message, cause: { code } });
  });
});

describe('listen, with the path of a Unix socket,', () => {
  it('serves on the socket, also in place of that of a dead process, and closing the server removes it', async () => {
    const leave = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', leave]);
    expect(existsSync(path)).toBe(true);
    const server = newServer();
    expect(await listen(server, { path })).toBe(path);
    expect(await isReached({ path })).toBe(true);
    server.close();
    await once(server, 'close');
    expect(existsSync(path)).toBe(false);
  });

  it('rejects a socket on which a process is listening, and leaves it alone', async () => {
    await listen(newServer(), { path });
    const problem = `cannot listen on ${path}: another process is already listening there (EADDRINUSE)`;
    await expect(listen(newServer(), { path })).rejects.toThrow(problem);
    expect(await isReached({ path })).toBe(true);
  });

  it('rejects a file that is not a socket, and leaves it alone, and a folder that does not exist', async () => {
    const file = folder.at('file');
    writeFileSync(file, 'precious');
    await expect(listen(newServer(), { path: file })).rejects.toThrow('the path is a file that is not a socket');
    expect(readFileSync(file, 'utf8')).toBe('precious');
    const missing = folder.at('missing/socket');
    const problem = `cannot listen on ${missing}: permission denied, or the folder does not exist (EACCES)`;
    await expect(listen(newServer(), { path: missing })).rejects.toThrow(problem);
  });
});

describe('the trusted certificates', () => {
  const [one, other] = [newAuthority(), newAuthority()];
  const [first, second] = [one.ca.trim(), other.ca.trim()];
  afterAll(() => {
    one.dispose();
    other.dispose();
  });

  const NONE = { SSL_CERT_FILE: folder.at('absent.pem'), SSL_CERT_DIR: folder.at('absent') };

  /** The certificates that are trusted in addition to those of Node. */
  function added(environment: Readonly<Record<string, string>>): readonly string[] {
    const byNode = new Set(readTrustedRoots(NONE));
    return readTrustedRoots({ ...NONE, ...environment }).filter((certificate) => !byNode.has(certificate));
  }

  it('include those of Node once, and those of the files in SSL_CERT_FILE and NODE_EXTRA_CA_CERTS', () => {
    expect(readTrustedRoots(NONE)).toEqual(expect.arrayContaining([...rootCertificates]));
    expect(added({ SSL_CERT_FILE: folder.write('known.pem', rootCertificates.slice(0, 3).join('\n')) })).toEqual([]);
    const bundle = folder.write('bundle.pem', `# the first\n${first}\n\n# the second\n${second}\n`);
    expect(added({ SSL_CERT_FILE: bundle })).toEqual([first, second]);
    expect(added({ NODE_EXTRA_CA_CERTS: folder.write('extra.pem', second) })).toEqual([second]);
  });

  it('include those of the files and links in every folder of SSL_CERT_DIR, each once', () => {
    folder.write('a/one.crt', `${first}\n`);
    folder.write('b/any-name', `${second}\r\n`);
    symlinkSync(folder.write('elsewhere/own.crt', first), folder.at('b/linked.pem'));
    symlinkSync('any-name', folder.at('b/1a2b3c4d.0'));
    expect(added({ SSL_CERT_DIR: `${folder.at('a')}:${folder.at('b')}` })).toEqual([first, second]);
  });

  it('do not include what is no certificate, which does not hide the certificates after it', () => {
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
    expect(added({ SSL_CERT_FILE: folder.write('broken.pem', `${broken}\n${first}\n`) })).toEqual([first]);
    expect(added({ SSL_CERT_FILE: folder.base })).toEqual([]);
  });

  it('include those of the system, from one of the usual places', () => {
    // Sources break the lines of a certificate differently.
    function certificatesIn(pem: string): readonly string[] {
      return pem.replaceAll(/\s/g, '').match(/-----BEGIN.+?ENDCERTIFICATE-----/g) ?? [];
    }
    const ofSystem = certificatesIn(readFileSync('/etc/ssl/certs/ca-certificates.crt', 'latin1'));
    const trusted = new Set(certificatesIn(readTrustedRoots({}).join('\n')));
    expect(ofSystem.length).toBeGreaterThan(0);
    expect(ofSystem.filter((certificate) => !trusted.has(certificate))).toEqual([]);
  });
});
