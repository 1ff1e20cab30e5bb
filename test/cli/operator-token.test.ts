import type { IncomingMessage } from 'node:http';
import { runAdmin } from '../../src/cli/admin/run-admin';
import { runClient } from '../../src/cli/client/run-client';
import { SecretMount } from '../support/data/secret-mount';
import { ApiStub } from './api-stub';

const TOKEN = 'token-of-the-operators';
const HEALTH = { healthy: true, unhealthy: [] };
const EXPLANATION = { answer: null, error: null, descriptors: [] };

/** What the standard error has, for each way to give a token that is in a file. */
const PROGRAMS: Readonly<Record<string, (file: string, address: string) => Promise<string>>> = {
  'weir-admin -token_file': async (file, address) =>
    (await runAdmin(['health', '-address', address, '-token_file', file], {})).stderr,
  'weir-admin with OPERATOR_TOKEN_FILE': async (file, address) =>
    (await runAdmin(['health', '-address', address], { OPERATOR_TOKEN_FILE: file })).stderr,
  'weir-admin with a blank after the path in OPERATOR_TOKEN_FILE': async (file, address) =>
    (await runAdmin(['health', '-address', address], { OPERATOR_TOKEN_FILE: `${file} ` })).stderr,
  'weir-client -explain with OPERATOR_TOKEN_FILE': async (file, address) => {
    let stderr = '';
    const argv = ['-explain', '-domain', 'd', '-descriptors', 'a=b', '-debug_address', address];
    await runClient(argv, {
      stdout: { write: () => true },
      stderr: { write: (text) => (stderr += text) },
      environment: { OPERATOR_TOKEN_FILE: file },
    });
    return stderr;
  },
};

describe.each(Object.entries(PROGRAMS))('%s', (_program, run) => {
  it.each([
    ['of two lines', 'secret-line-1\nsecret-line-2'],
    ['that is too short', 'secret-line-1'],
    ['with a blank', 'secret-line-1 secret-line-2'],
    ['with a control character', 'secret-line-1\u0000secret-line-2'],
  ])('rejects a token %s without printing it', async (_what, text) => {
    using secrets = new SecretMount({ token: text });
    const requests: IncomingMessage[] = [];
    await using api = await ApiStub.start((request) => void requests.push(request));
    const stderr = await run(secrets.path('token'), api.address);
    expect(stderr).toContain(
      ': cannot use the file of the operator token: it must contain 16 to 1024 visible ASCII characters, without blanks\n',
    );
    expect(stderr).not.toMatch(/secret-line/);
    expect(requests).toEqual([]);
  });

  it('sends the token of a file that has blanks around it', async () => {
    using secrets = new SecretMount({ token: ` ${TOKEN} \n` });
    const sent: unknown[] = [];
    await using api = await ApiStub.start(({ headers }, response) => {
      sent.push(headers.authorization);
      response.end(JSON.stringify({ ...HEALTH, ...EXPLANATION }));
    });
    expect(await run(secrets.path('token'), api.address)).toBe('');
    expect(sent).toEqual([`Bearer ${TOKEN}`]);
  });
});

it('an invalid OPERATOR_TOKEN is rejected without printing it', async () => {
  const { exitCode, stderr } = await runAdmin(['health', '-address', '127.0.0.1:1'], { OPERATOR_TOKEN: 'öffentlich' });
  expect([exitCode, stderr]).toEqual([
    1,
    'weir-admin: OPERATOR_TOKEN is invalid; allowed: 16 to 1024 visible ASCII characters, without blanks\n' +
      'Run weir-admin -h for a list of the commands and flags.\n',
  ]);
});
