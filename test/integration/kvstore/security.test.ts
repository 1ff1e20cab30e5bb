import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom } from 'rxjs';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import type { StoreTlsFiles } from '../../../src/sinks/counters/tls-material';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { until } from '../../support/waiting/until';
import { type Authority, newAuthority } from '../../support/data/certificates';
import { apply, operation } from '../counters/scenarios';
import { NO_TLS_FILES, instance, options } from './options';

const PASSWORD = 'hidden:pass word';
const GIVE_UP = { initialInterval: 10, maxInterval: 20, maxElapsedTime: 200 };

const opened: KvstoreCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

interface Attempt {
  readonly main: InstanceOptions;
  readonly tlsFiles?: StoreTlsFiles;
  readonly log?: RecordedLog;
}

function attempt({ main, tlsFiles, log = new RecordedLog() }: Attempt): KvstoreCounters {
  const counters = kvstoreCounters(options(main, { startup: GIVE_UP, log, ...(tlsFiles && { tlsFiles }) }));
  opened.push(counters);
  return counters;
}

async function counts(given: Attempt): Promise<unknown> {
  const counters = attempt(given);
  await firstValueFrom(counters.ready$);
  const [count] = await apply(counters, operation(`k${Math.random()}`, 1));
  return count;
}

describe('credentials', () => {
  let server: RedisProcess;
  beforeAll(async () => {
    server = await RedisProcess.start({
      directives: ['--requirepass', PASSWORD, '--user', 'ann', 'on', `>${PASSWORD}`, '~*', '&*', '+@all'],
      control: { password: PASSWORD },
    });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it('may be a password that contains a colon with its user, or a user of the ACL', async () => {
    expect(await counts({ main: instance(server.address, { auth: `default:${PASSWORD}` }) })).toBe(1);
    expect(await counts({ main: instance(server.address, { auth: `ann:${PASSWORD}` }) })).toBe(1);
    expect(await counts({ main: instance(`redis://ann:${encodeURIComponent(PASSWORD)}@${server.address}/2`) })).toBe(1);
    expect(await server.control.dbsize()).toBe(2);
  });

  it.each([
    ['wrong', 'WRONGPASS', `ann:${PASSWORD}x`],
    ['missing', 'NOAUTH', undefined],
  ])('that are %s fail with the code of the server, and never appear in logs or errors', async (_, code, auth) => {
    const log = new RecordedLog();
    const counters = attempt({ main: instance(server.address, { auth }), log });
    await expect(firstValueFrom(counters.ready$)).rejects.toThrow(code);
    const failure = await apply(counters, operation('k', 1)).catch((error: Error) => error);
    expect(log.text).toContain(code);
    expect(`${log.text} ${JSON.stringify(failure)} ${String((failure as Error).cause)}`).not.toContain(PASSWORD);
  });

  it.each([
    ['short', PASSWORD],
    ['longer than the text that servers quote', `${'long pass '.repeat(30)}end`],
  ])('that are %s do not appear in errors when a server without AUTH quotes them', async (_, password) => {
    await using without = await RedisProcess.start({ directives: ['--rename-command', 'AUTH', ''] });
    const log = new RecordedLog();
    const counters = attempt({ main: instance(without.address, { auth: `ann:${password}` }), log });
    const failure = await firstValueFrom(counters.ready$).catch((error: Error) => error);
    expect(String(failure)).toContain("unknown command 'AUTH'");
    const reported = `${log.text} ${String(failure)} ${String((failure as Error).cause)}`;
    expect(reported).not.toContain(password.slice(0, 12));
  });

  it('that the server does not require cause one warning, and counting works', async () => {
    await using open = await RedisProcess.start();
    const log = new RecordedLog();
    expect(await counts({ main: instance(open.address, { auth: 'unused' }), log })).toBe(1);
    expect(log.messages).toEqual([
      'the counter store requires no password, but one is configured; continuing without authentication',
    ]);
  });

  it('of a user with only the permissions for counting are sufficient', async () => {
    const rights = ['~*', '+evalsha', '+eval', '+incrby', '+decrby', '+get', '+ttl', '+expire'];
    await server.control.call('ACL', 'SETUSER', 'counting', 'on', '>x', ...rights);
    expect(await counts({ main: instance(server.address, { auth: 'counting:x' }) })).toBe(1);
  });

  it('of a user who may not run scripts cause a warning, and a line when new connections may run them', async () => {
    const log = new RecordedLog();
    await server.control.call('ACL', 'SETUSER', 'plain', 'on', '>x', '~*', '+@all', '-eval', '-evalsha');
    const counters = attempt({ main: instance(server.address, { auth: 'plain:x', poolSize: 1 }), log });
    await firstValueFrom(counters.ready$);
    expect(await apply(counters, operation('plain', 1))).toEqual([1]);
    await server.control.call('ACL', 'SETUSER', 'plain', '+@all');
    await server.control.call('CLIENT', 'KILL', 'USER', 'plain');
    await until('the end to be logged', async () => {
      await apply(counters, operation('plain', 1)).catch(() => undefined);
      return log.messages.some((message) => message.includes('accepts scripts'));
    });
    const lines = log.lines.filter(({ message }) => message.includes('scripts'));
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'the counter store rejects scripts; counting with plain commands, not atomically'],
      ['warn', 'the counter store accepts scripts again on new connections'],
    ]);
  });

  it('of a user without permission for a key fail the calls that count on it', async () => {
    await server.control.call('ACL', 'SETUSER', 'narrow', 'on', '>x', '~mine*', '+@all');
    const counters = attempt({ main: instance(server.address, { auth: 'narrow:x' }) });
    await firstValueFrom(counters.ready$);
    expect(await apply(counters, operation('mine', 1))).toEqual([1]);
    const [failure] = await apply(counters, operation('yours', 1));
    expect(failure).toMatchObject({
      code: 'store_failed',
      message: 'the user of the counter store lacks a permission',
    });
  });
});

describe('credentials of sentinels and clusters', () => {
  it('differ between the sentinels and the servers', async () => {
    await using sentinels = await RedisSentinels.start({
      directives: ['--requirepass', 'data', '--masterauth', 'data'],
      control: { password: 'data' },
      sentinelLines: ['sentinel auth-pass counters data', 'requirepass watch', 'sentinel sentinel-pass watch'],
      sentinelOptions: { control: { password: 'watch' } },
    });
    const main = instance(sentinels.url, { type: 'sentinel', auth: 'data', sentinelAuth: 'watch' });
    expect(await counts({ main })).toBe(1);
    await expect(counts({ main: { ...main, sentinelAuth: undefined } })).rejects.toThrow('NOAUTH');
    await expect(counts({ main: { ...main, auth: 'wrong' } })).rejects.toThrow('WRONGPASS');
  });

  it('are used for every node of the cluster', async () => {
    await using cluster = await RedisCluster.start({
      directives: ['--requirepass', 'data'],
      control: { password: 'data' },
    });
    const counters = attempt({ main: instance(cluster.url, { type: 'cluster', auth: 'data' }) });
    await firstValueFrom(counters.ready$);
    const steps = Array.from({ length: 50 }, (_, index) => operation(`k${index}`, 0));
    const results = await until('all nodes are connected', async () => {
      const found = await apply(counters, ...steps);
      return found.every((count) => typeof count === 'number') && found;
    });
    expect(new Set(results)).toEqual(new Set([0]));
  });
});

describe('TLS', () => {
  let authority: Authority;
  let folder: string;
  let server: RedisProcess;
  let files: StoreTlsFiles;

  function file(name: string, text: string): string {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  }

  /** A server that accepts only TLS and requires a client certificate. */
  function tlsServer(name: string): Promise<RedisProcess> {
    const own = authority.issue(name);
    return RedisProcess.start({
      isTls: true,
      directives: [
        ...['--tls-cert-file', file(`${name}.pem`, own.cert), '--tls-key-file', file(`${name}.key`, own.key)],
        ...['--tls-ca-cert-file', file('ca.pem', authority.ca)],
      ],
      control: { tls: { ca: authority.ca, ...client, checkServerIdentity: () => undefined } },
    });
  }

  let client: { readonly cert: string; readonly key: string };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'weir-tls-'));
    authority = newAuthority();
    client = authority.issue('weir');
    files = {
      ...NO_TLS_FILES,
      caFile: file('ca.pem', authority.ca),
      certFile: file('client.pem', client.cert),
      keyFile: file('client.key', client.key),
    };
    server = await tlsServer('localhost');
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    authority.dispose();
    await rm(folder, { recursive: true });
  });

  it('is used with the configured CA and certificate when the setting or the scheme requires it', async () => {
    expect(await counts({ main: instance(`localhost:${server.port}`, { tls: true }), tlsFiles: files })).toBe(1);
    expect(await counts({ main: instance(`rediss://localhost:${server.port}`), tlsFiles: files })).toBe(1);
  });

  it('verifies the name in the certificate unless KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION is set', async () => {
    const main = instance(server.address, { tls: true });
    await expect(counts({ main, tlsFiles: files })).rejects.toThrow(/does not match certificate|altnames/);
    expect(await counts({ main, tlsFiles: { ...files, skipHostnameVerification: true } })).toBe(1);
  });

  it('verifies the certificate chain even when the name is not verified', async () => {
    const main = instance(server.address, { tls: true });
    const withoutCa = { ...files, caFile: undefined, skipHostnameVerification: true };
    await expect(counts({ main, tlsFiles: withoutCa })).rejects.toThrow(/certificate/);
  });

  it('fails without the client certificate that the server requires', async () => {
    const main = instance(`localhost:${server.port}`, { tls: true });
    const withoutPair = { ...files, certFile: undefined, keyFile: undefined };
    await expect(counts({ main, tlsFiles: withoutPair })).rejects.toThrow('cannot connect to the counter store');
  });

  it.each([0, 5_000])(
    'reports at once that the server does not speak TLS, with a timeout of %i ms',
    async (timeout) => {
      await using plain = await RedisProcess.start();
      const log = new RecordedLog();
      const main = instance(`localhost:${plain.port}`, { tls: true, timeout });
      await expect(counts({ main, tlsFiles: files, log })).rejects.toThrow(
        'the server does not speak TLS, but is configured with TLS',
      );
      expect(log.text).toContain('the server does not speak TLS');
    },
  );

  it('reports that the server speaks only TLS when the setting is missing', async () => {
    const log = new RecordedLog();
    await expect(counts({ main: instance(server.address), log })).rejects.toThrow(
      'the server speaks only TLS, but is configured without TLS',
    );
    expect(log.text).toContain('the server speaks only TLS');
  });

  it('reports that a server which answers without TLS does not speak TLS', async () => {
    await using full = await RedisProcess.start({ directives: ['--maxclients', '1'] });
    const main = instance(full.address, { tls: true, timeout: 0 });
    await expect(counts({ main, tlsFiles: files })).rejects.toThrow('the server does not speak TLS');
  });

  it('rejects files that cannot be used with an error that names them, before it connects', () => {
    const main = instance(`localhost:${server.port}`, { tls: true });
    function open(more: Partial<StoreTlsFiles>) {
      return () => attempt({ main, tlsFiles: { ...files, ...more } });
    }
    expect(open({ caFile: join(folder, 'absent.pem') })).toThrow(
      /cannot read the TLS file KVSTORE_TLS_CACERT=.*absent\.pem/,
    );
    expect(open({ caFile: file('text.pem', 'no certificate') })).toThrow(
      /cannot use the TLS files KVSTORE_TLS_CACERT=.*text\.pem, KVSTORE_TLS_CLIENT_CERT=.*, KVSTORE_TLS_CLIENT_KEY=/,
    );
    expect(open({ keyFile: file('other.key', authority.issue('other').key) })).toThrow(
      /cannot use the TLS files .*, KVSTORE_TLS_CLIENT_KEY=.*other\.key/,
    );
  });

  it('reads the files again for each connection, and keeps the previous pair when the new one is broken', async () => {
    const log = new RecordedLog();
    const main = instance(`localhost:${server.port}`, { tls: true, poolSize: 1 });
    const rotated = {
      ...files,
      certFile: file('rotated.pem', client.cert),
      keyFile: file('rotated.key', client.key),
    };
    const counters = attempt({ main, tlsFiles: rotated, log });
    await firstValueFrom(counters.ready$);
    async function again(): Promise<void> {
      await server.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await until('calls succeed again', () =>
        apply(counters, operation('again', 1)).then(
          () => true,
          () => false,
        ),
      );
    }
    file('rotated.pem', 'broken');
    await again();
    await again();
    file('rotated.pem', client.cert);
    await again();
    const lines = log.lines.filter(({ message }) => message.includes('TLS files'));
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['error', 'new TLS files of the counter store rejected; keeping the current ones'],
      ['error', 'the TLS files of the counter store are valid again'],
    ]);
  });

  it('uses a new pair after the server has rejected the previous one', async () => {
    const stranger = newAuthority();
    try {
      const { cert, key } = stranger.issue('stranger');
      const changing = { ...files, certFile: file('changing.pem', cert), keyFile: file('changing.key', key) };
      const counters = kvstoreCounters(
        options(instance(`localhost:${server.port}`, { tls: true }), { tlsFiles: changing }),
      );
      opened.push(counters);
      const isConnectedBefore = await firstValueFrom(counters.connected$);
      file('changing.pem', client.cert);
      file('changing.key', client.key);
      await firstValueFrom(counters.ready$);
      expect(isConnectedBefore).toBe(false);
      expect(await apply(counters, operation('changed', 1))).toEqual([1]);
    } finally {
      stranger.dispose();
    }
  });
});
