import { rmSync } from 'node:fs';
import { Subject } from 'rxjs';
import type { ServerTls } from '../../src/grpc/http2/tls';
import { type CertificateEvent, type Certificates, ListenerCertificates } from '../../src/sources/certificates';
import { currentSecret, maskingReader } from '../../src/sources/secret-files';
import { readSettings } from '../../src/settings/read-settings';
import { Statistics } from '../../src/statistics/statistics';
import { SecretMask } from '../../src/text/secret-mask';
import { type Authority, newAuthority } from '../support/data/certificates';
import { RecordedLog } from '../support/data/recorded-log';
import { SecretMount } from '../support/data/secret-mount';

describe('the certificates of the gRPC listener', () => {
  const BROKEN: CertificateEvent = { rejected: 'KEY=/tls.key: it is empty' };
  const REJECTED = 'new certificates of the gRPC listener rejected; keeping the current ones';
  const LOADED = 'new certificates of the gRPC listener loaded';
  const VALID_AGAIN = 'the certificates of the gRPC listener are valid again';

  let authority: Authority;
  let one: Certificates;
  let two: Certificates;
  beforeAll(() => {
    authority = newAuthority();
    [one, two] = [loaded('one'), loaded('two')];
  });
  afterAll(() => authority.dispose());

  function loaded(name: string): Certificates {
    return { ...authority.issue(name), clientCa: undefined };
  }

  /** Certificates whose events the test emits, and the server that they are applied to. */
  function started() {
    const events$ = new Subject<CertificateEvent>();
    const statistics = new Statistics(1000);
    const log = new RecordedLog();
    const tls = new ListenerCertificates({ ...readSettings({}), statistics, log }, 'gRPC', events$);
    const applied: ServerTls[] = [];
    return {
      tls,
      applied,
      emit: (...events: readonly CertificateEvent[]) => events.forEach((event) => events$.next(event)),
      follow: () => tls.follow({ replaceTls: (next) => applied.push(next) }),
      // The certificates of the test expire soon.
      messages: () => log.messages.filter((message) => message.includes('certificates of the gRPC listener')),
      counts: () => ['certs.load_attempts', 'certs.load_failures'].map((name) => statistics.counter(name).value),
      isObserved: () => events$.observed,
      [Symbol.dispose]: () => tls.close(),
    };
  }

  it('are at its opening those that were loaded last, when the files have become invalid since', async () => {
    using run = started();
    run.emit(one, BROKEN);
    expect(await run.tls.first()).toMatchObject(one);
    run.follow();
    expect([run.applied, run.messages(), run.counts()]).toEqual([[], [REJECTED], [2, 1]]);
    run.emit(two, one);
    expect(run.applied).toMatchObject([two, one]);
    const messages = [REJECTED, VALID_AGAIN, LOADED, LOADED];
    expect([run.messages(), run.counts()]).toEqual([messages, [4, 1]]);
    run.tls.close();
    expect(run.isObserved()).toBe(false);
  });

  it('are an error of the start when none has been loaded, but not if they have become valid since', async () => {
    using run = started();
    run.emit(BROKEN);
    await expect(run.tls.first()).rejects.toThrow(new Error('TLS of the gRPC listener: KEY=/tls.key: it is empty'));
    expect([run.messages(), run.counts()]).toEqual([[], [1, 1]]);
    run.emit(one);
    expect(await run.tls.first()).toMatchObject(one);
    expect(run.messages()).toEqual([]);
  });

  it.each([[[]], [[BROKEN]]])('are applied when they change while it opens, followed by %j', async (events) => {
    using run = started();
    run.emit(one);
    await run.tls.first();
    run.emit(two, ...events);
    run.follow();
    expect(run.applied).toMatchObject([two]);
  });
});

describe('the current value of a secret', () => {
  const BAD = 'cannot use the file of a secret; keeping its last value';
  const GOOD = 'the file of a secret can be used again';
  const NEW = 'the new value in the file of a secret is used';

  afterEach(() => void jest.useRealTimers());

  it('is that of its file, and the last one while the file cannot be used', () => {
    using mount = new SecretMount({ auth: 'ann:first-password\n' });
    const log = new RecordedLog();
    const mask = new SecretMask();
    const reading = readSettings({ REDIS_AUTH_FILE: mount.path('auth') }, maskingReader(mask));
    const current = currentSecret(reading, 'kvstoreAuth', { log });
    const seen = [current()];
    for (const text of ['ann:second-password', undefined, '\n', 'ann:third-password']) {
      mount.replace(text === undefined ? {} : { auth: text });
      seen.push(current(), current());
    }
    const values = ['first', ...Array<string>(6).fill('second'), 'third', 'third'];
    expect(seen).toEqual(values.map((value) => `ann:${value}-password`));
    expect(log.lines.map(({ level, message, fields }) => [level, message, fields['reason']])).toEqual([
      ['info', NEW, undefined],
      ['warn', BAD, 'it cannot be read (ENOENT)'],
      ['warn', BAD, 'it is empty'],
      ['info', NEW, undefined],
      ['notice', GOOD, undefined],
    ]);
    expect(log.lines[0]?.fields['file']).toBe(`REDIS_AUTH_FILE=${mount.path('auth')}`);
    expect(mask.hide('first-password, second-password and third-password')).toBe('***, *** and ***');
  });

  it('is not replaced by a value that is not allowed, or of another type', () => {
    using mount = new SecretMount({ token: 'a-token-of-operators', url: 'redis://:one@h:1' });
    const env = { OPERATOR_TOKEN_FILE: mount.path('token'), KVSTORE_URL_FILE: mount.path('url') };
    const reading = readSettings(env, maskingReader(new SecretMask()));
    const log = new RecordedLog();
    const token = currentSecret(reading, 'operatorToken', { log });
    const url = currentSecret(reading, 'kvstoreUrl', {
      log,
      problemOf: (address = '') => (address.includes('@h:1') ? undefined : 'the servers differ'),
    });
    mount.replace({ token: 'short', url: 'redis://:two@h:1' });
    expect([token(), url()]).toEqual(['a-token-of-operators', 'redis://:two@h:1']);
    mount.replace({ token: 'a-token-of-operators', url: 'redis://:three@h:2' });
    expect([token(), url()]).toEqual(['a-token-of-operators', 'redis://:two@h:1']);
    expect(log.lines.flatMap(({ fields }) => fields['reason'] ?? [])).toEqual([
      'it must contain 16 to 1024 visible ASCII characters, without blanks',
      'the servers differ',
    ]);
  });

  it('is that of its variable when there is no file; a file that cannot be read is reported although it is not needed', () => {
    const inVariable = readSettings({ KVSTORE_AUTH: 'word' });
    expect(currentSecret(inVariable, 'kvstoreAuth', { log: new RecordedLog() })()).toBe('word');
    using mount = new SecretMount({ auth: 'word' });
    jest.useFakeTimers();
    const reading = readSettings({ REDIS_AUTH_FILE: mount.path('auth') }, maskingReader(new SecretMask()));
    const log = new RecordedLog();
    currentSecret(reading, 'kvstoreAuth', { log });
    rmSync(mount.path('auth'));
    jest.advanceTimersByTime(30_000);
    expect(log.messages).toEqual([BAD]);
  });
});
