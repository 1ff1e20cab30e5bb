import { readFileSync } from 'node:fs';
import { firstValueFrom } from 'rxjs';
import type { NamedFile } from '../../../src/net/reloaded-files';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import type { StoreTlsFiles } from '../../../src/sinks/counters/tls-material';
import { namedFile } from '../../support/data/certificates';
import { RecordedLog } from '../../support/data/recorded-log';
import { TemporaryFolder } from '../../support/data/temporary-folder';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisTls } from '../../support/processes/redis/redis-tls';
import { schedulerWith } from '../../support/waiting/scheduler-with';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { GIVE_UP, NO_TLS_FILES, connected, instance, nextCount, openKvstore } from './options';

const PASSWORD = 'hidden:pass word';

/** Opens counters that give up soon when they cannot connect, and resolves when they are connected. */
function open(main: InstanceOptions, tlsFiles = NO_TLS_FILES, log = new RecordedLog()): Promise<KvstoreCounters> {
  return connected(main, { startup: GIVE_UP, tlsFiles, log });
}

async function counts(...given: Parameters<typeof open>): Promise<unknown> {
  return (await apply(await open(...given), operation(`k${Math.random()}`, 1)))[0];
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
    expect(await counts(instance(server.address, { auth: `default:${PASSWORD}` }))).toBe(1);
    expect(await counts(instance(server.address, { auth: `ann:${PASSWORD}` }))).toBe(1);
    expect(await counts(instance(`redis://ann:${encodeURIComponent(PASSWORD)}@${server.address}/2`))).toBe(1);
    expect(await server.control.dbsize()).toBe(2);
  });

  it.each([
    ['wrong', 'WRONGPASS', `ann:${PASSWORD}x`],
    ['missing', 'NOAUTH', undefined],
  ])('that are %s fail with the code of the server, and never appear in logs or errors', async (_, code, auth) => {
    const log = new RecordedLog();
    const counters = openKvstore(instance(server.address, { auth }), { startup: GIVE_UP, log });
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
    const main = instance(without.address, { auth: `ann:${password}` });
    const { message, cause } = (await open(main, NO_TLS_FILES, log).catch((error: Error) => error)) as Error;
    expect(message).toContain("unknown command 'AUTH'");
    const reported = `${log.text} ${message} ${String(cause)}`;
    expect(reported).not.toContain(password.slice(0, 12));
  });

  it('that the server does not require cause one warning, and counting works', async () => {
    await using without = await RedisProcess.start();
    const log = new RecordedLog();
    expect(await counts(instance(without.address, { auth: 'unused' }), NO_TLS_FILES, log)).toBe(1);
    expect(log.messages).toEqual([
      'the counter store requires no password, but one is configured; continuing without authentication',
    ]);
  });

  it('of a user with only the permissions for counting are sufficient', async () => {
    const rights = ['~*', '+evalsha', '+eval', '+incrby', '+decrby', '+get', '+ttl', '+expire'];
    await server.control.call('ACL', 'SETUSER', 'counting', 'on', '>x', ...rights);
    expect(await counts(instance(server.address, { auth: 'counting:x' }))).toBe(1);
  });

  it('of a user who may not run scripts cause a warning, and a line when new connections may run them', async () => {
    const log = new RecordedLog();
    await server.control.call('ACL', 'SETUSER', 'plain', 'on', '>x', '~*', '+@all', '-eval', '-evalsha');
    const counters = await open(instance(server.address, { auth: 'plain:x', poolSize: 1 }), NO_TLS_FILES, log);
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
      ['notice', 'the counter store accepts scripts again on new connections'],
    ]);
  });

  it('of a user without permission for a key fail the calls that count on it', async () => {
    await server.control.call('ACL', 'SETUSER', 'narrow', 'on', '>x', '~mine*', '+@all');
    const counters = await open(instance(server.address, { auth: 'narrow:x' }));
    expect(await apply(counters, operation('mine', 1))).toEqual([1]);
    expect(await apply(counters, operation('yours', 1))).toMatchObject([
      { code: 'store_failed', message: 'the user of the counter store lacks a permission' },
    ]);
  });

  it('are those of the moment for each new connection, and no rejected one appears in a log line', async () => {
    await server.control.call('ACL', 'SETUSER', 'rotating', 'on', '>first', '~*', '&*', '+@all');
    let url = `redis://rotating:first@${server.address}`;
    const main = instance(url);
    const log = new RecordedLog();
    const counters = await open({ ...main, current: () => ({ ...main, url }) }, NO_TLS_FILES, log);
    url = `redis://rotating:hidden-word@${server.address}`;
    await server.control.call('ACL', 'SETUSER', 'rotating', 'resetpass', '>second');
    await server.control.call('CLIENT', 'KILL', 'USER', 'rotating');
    await until('the log has the reason', () => log.text.includes('WRONGPASS'));
    url = `redis://rotating:second@${server.address}`;
    expect(await nextCount(counters, 'again')).toBeGreaterThan(0);
    expect(log.text).not.toContain('hidden-word');
  });
});

describe('TLS', () => {
  const tls = new RedisTls();
  const files = tls.files({ withCertificate: true });
  const folder = new TemporaryFolder();
  let server: RedisProcess;
  function textOf(file: NamedFile | undefined): string {
    return readFileSync(file?.path ?? '', 'utf8');
  }

  beforeAll(async () => {
    // It accepts only TLS and requires a client certificate.
    server = await RedisProcess.start({ ...tls.server, directives: tls.directives('localhost') });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    tls[Symbol.dispose]();
    folder[Symbol.dispose]();
  });

  /** The server by the name in its certificate. */
  function byName(more: Partial<InstanceOptions> = {}): InstanceOptions {
    return instance(`localhost:${server.port}`, { tls: true, ...more });
  }

  it('is used with the configured CA and the certificate that the server requires, by the setting or the scheme', async () => {
    expect(await counts(byName(), files)).toBe(1);
    expect(await counts(instance(`rediss://localhost:${server.port}`), files)).toBe(1);
    const withoutPair = { ...files, cert: undefined, key: undefined };
    await expect(counts(byName(), withoutPair)).rejects.toThrow('cannot connect to the counter store');
  });

  it('verifies the name unless KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION is set, and the chain of certificates anyway', async () => {
    const main = instance(server.address, { tls: true });
    const skipping = { ...files, skipHostnameVerification: true };
    await expect(counts(main, files)).rejects.toThrow(/does not match certificate|altnames/);
    expect(await counts(main, skipping)).toBe(1);
    await expect(counts(main, { ...skipping, ca: undefined })).rejects.toThrow(/certificate/);
  });

  it('is suspected to be the reason when only one side uses it', async () => {
    await using plain = await RedisProcess.start({ directives: ['--maxclients', '2'] });
    for (const timeout of [0, 300]) {
      const main = instance(plain.address, { tls: true, timeout });
      // The limit where none is configured is shorter.
      const scheduler = schedulerWith({ 10_000: 200 });
      const opening = connected(main, { tlsFiles: files, startup: GIVE_UP, scheduler });
      await expect(opening).rejects.toThrow(/does the server speak TLS\?|the server does not speak TLS/);
    }
    // A server that answers before it has read anything.
    await plain.control.config('SET', 'maxclients', '1');
    await expect(counts(instance(plain.address, { tls: true }), files)).rejects.toThrow(
      'the server does not speak TLS, but is configured with TLS',
    );
    await expect(counts(instance(server.address))).rejects.toThrow(
      /does the server require TLS\?|the server speaks only TLS, but is configured without TLS/,
    );
  });

  it('rejects files that cannot be used with an error that names them, before it connects', () => {
    function opening(more: Partial<StoreTlsFiles>) {
      return () => openKvstore(byName(), { tlsFiles: { ...files, ...more } });
    }
    const absent = opening({ ca: namedFile('KVSTORE_TLS_CACERT', folder.at('absent.pem')) });
    expect(absent).toThrow(/cannot use the TLS files: KVSTORE_TLS_CACERT=.*absent\.pem: it cannot be read \(ENOENT\)/);
    const text = folder.write('text.pem', 'no certificate');
    expect(opening({ ca: namedFile('KVSTORE_TLS_CACERT', text) })).toThrow(
      /cannot use the TLS files: KVSTORE_TLS_CACERT=.*text\.pem is not a certificate in PEM format/,
    );
    using others = new RedisTls();
    const { key } = others.files({ withCertificate: true });
    expect(opening({ key })).toThrow(/KVSTORE_TLS_CLIENT_KEY=.*client\.key is not the key of KVSTORE_TLS_CLIENT_CERT=/);
  });

  it('reads the files again for each connection, and keeps the previous pair when the new one is broken', async () => {
    const log = new RecordedLog();
    const cert = namedFile('CERT', folder.write('rotated.pem', textOf(files.cert)));
    const key = namedFile('KEY', folder.write('rotated.key', textOf(files.key)));
    const counters = await open(byName({ poolSize: 1 }), { ...files, cert, key }, log);
    async function again(): Promise<void> {
      await server.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await nextCount(counters, 'again');
    }
    folder.write('rotated.pem', 'broken');
    await again();
    await again();
    folder.write('rotated.pem', textOf(files.cert));
    await again();
    const lines = log.lines.filter(({ message }) => message.includes('TLS files'));
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['error', 'new TLS files of the counter store rejected; keeping the current ones'],
      ['notice', 'the TLS files of the counter store are valid again'],
    ]);
  });

  it.each([
    ['a new pair after the server has rejected the previous one', ['cert', 'key']],
    ['a new CA after the certificate of the server was rejected', ['ca']],
  ] as const)('uses %s', async (_, names) => {
    using strangers = new RedisTls();
    const stranger = strangers.files({ withCertificate: true });
    const changing = names.map((name) => [
      name,
      namedFile(name, folder.write(`changing-${name}`, textOf(stranger[name]))),
    ]);
    const log = new RecordedLog();
    const counters = openKvstore(byName(), { tlsFiles: { ...files, ...Object.fromEntries(changing) }, log });
    await until('it is rejected', () => log.text.includes('cannot connect'));
    for (const name of names) folder.write(`changing-${name}`, textOf(files[name]));
    await firstValueFrom(counters.ready$);
    expect(await apply(counters, operation(`changed ${names[0]}`, 1))).toEqual([1]);
  });
});
