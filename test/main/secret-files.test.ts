import { rmSync } from 'node:fs';
import { currentSecret, maskingReader } from '../../src/main/secret-files';
import { readSettings } from '../../src/settings/read-settings';
import { SecretMask } from '../../src/text/secret-mask';
import { RecordedLog } from '../support/data/recorded-log';
import { SecretMount } from '../support/data/secret-mount';

const BAD = 'cannot use the file of a secret; keeping its last value';
const GOOD = 'the file of a secret can be used again';

describe('the current value of a secret', () => {
  it('is that of its file, and the last one while the file cannot be used', async () => {
    using mount = new SecretMount({ auth: 'ann:first-password\n' });
    const log = new RecordedLog();
    const mask = new SecretMask();
    const file = `REDIS_AUTH_FILE=${mount.path('auth')}`;
    const reading = readSettings({ REDIS_AUTH_FILE: mount.path('auth') }, maskingReader(mask));
    const current = currentSecret(reading, 'kvstoreAuth', { log });
    expect([current(), current()]).toEqual(['ann:first-password', 'ann:first-password']);
    expect(log.lines).toEqual([]);

    mount.replace({ auth: 'ann:second-password' });
    expect([current(), current()]).toEqual(['ann:second-password', 'ann:second-password']);
    mount.replace({});
    expect([current(), current()]).toEqual(['ann:second-password', 'ann:second-password']);
    mount.replace({ auth: '\n' });
    expect([current(), current()]).toEqual(['ann:second-password', 'ann:second-password']);
    mount.replace({ auth: 'ann:third-password' });
    expect([current(), current()]).toEqual(['ann:third-password', 'ann:third-password']);
    const fields = { file };
    expect(log.lines).toEqual([
      { level: 'info', message: 'the new value in the file of a secret is used', fields },
      { level: 'warn', message: BAD, fields: { ...fields, reason: 'it cannot be read (ENOENT)' } },
      { level: 'warn', message: BAD, fields: { ...fields, reason: 'it is empty' } },
      { level: 'info', message: 'the new value in the file of a secret is used', fields },
      { level: 'warn', message: GOOD, fields },
    ]);
    expect(mask.hide('first-password, second-password and third-password')).toBe('***, *** and ***');
  });

  it('is not replaced by a value that is not allowed, or of another type', async () => {
    using mount = new SecretMount({ token: 'a-token-of-operators', url: 'redis://:one@h:1' });
    const env = { OPERATOR_TOKEN_FILE: mount.path('token'), KVSTORE_URL_FILE: mount.path('url') };
    const reading = readSettings(env, maskingReader(new SecretMask()));
    const log = new RecordedLog();
    const token = currentSecret(reading, 'operatorToken', { log });
    function problemOf(address = ''): string | undefined {
      return address.includes('@h:1') ? undefined : 'the servers differ';
    }
    const url = currentSecret(reading, 'kvstoreUrl', { log, problemOf });
    mount.replace({ token: 'short', url: 'redis://:two@h:1' });
    expect([token(), url()]).toEqual(['a-token-of-operators', 'redis://:two@h:1']);
    mount.replace({ token: 'a-token-of-operators', url: 'redis://:three@h:2' });
    expect([token(), url()]).toEqual(['a-token-of-operators', 'redis://:two@h:1']);
    expect(log.lines.flatMap(({ fields }) => fields['reason'] ?? [])).toEqual([
      'it must contain 16 to 1024 visible ASCII characters, without blanks',
      'the servers differ',
    ]);
  });

  it('is reported while it cannot be read, although it is not needed at the time', async () => {
    using mount = new SecretMount({ auth: 'word' });
    jest.useFakeTimers();
    try {
      const reading = readSettings({ REDIS_AUTH_FILE: mount.path('auth') }, maskingReader(new SecretMask()));
      const log = new RecordedLog();
      currentSecret(reading, 'kvstoreAuth', { log });
      rmSync(mount.path('auth'));
      jest.advanceTimersByTime(30_000);
      expect(log.messages).toEqual([BAD]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('is that of its variable when there is no file', () => {
    const reading = readSettings({ KVSTORE_AUTH: 'word' });
    expect(currentSecret(reading, 'kvstoreAuth', { log: new RecordedLog() })()).toBe('word');
  });
});
