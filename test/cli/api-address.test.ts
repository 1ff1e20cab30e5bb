import { runAdmin } from '../../src/cli/admin/run-admin';
import { runClient } from '../../src/cli/client/run-client';
import { ApiStub, withIpv6 } from './api-stub';

const TOKEN = 'token-of-the-operators';
const ANSWER = { healthy: true, unhealthy: [], answer: null, error: null, descriptors: [] };

/** What the standard error has, for each program with an address of the API. */
const PROGRAMS: Readonly<Record<string, (address: string) => Promise<string>>> = {
  'weir-admin -address': async (address) =>
    (await runAdmin(['health', '-address', address], { OPERATOR_TOKEN: TOKEN })).stderr,
  'weir-client -explain -debug_address': async (address) => {
    let stderr = '';
    await runClient(['-explain', '-domain', 'd', '-descriptors', 'a=b', '-debug_address', address], {
      stdout: { write: () => true },
      stderr: { write: (text) => (stderr += text) },
      environment: { OPERATOR_TOKEN: TOKEN },
    });
    return stderr;
  },
};

/** Starts a stub on a port to which `fetch` sends nothing; others may be in use. */
async function onBlockedPort(): Promise<ApiStub> {
  for (const port of [6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080]) {
    const stub = await ApiStub.answering(ANSWER, 200, { port }).catch(() => undefined);
    if (stub !== undefined) return stub;
  }
  throw new Error('all of these ports are in use');
}

describe.each(Object.entries(PROGRAMS))('%s', (_program, run) => {
  it.each([
    ['with a scheme', (at: string) => `http://${at}`],
    ['with a path and a query', (at: string) => `${at}/x?`, (at: string) => `${at}/x?***`],
    ['with a fragment', (at: string) => `${at}#`],
    ['with a user', (at: string) => `user:password@${at}`, (at: string) => `***@${at}`],
    ['without a port', () => '127.0.0.1'],
    ['with port 0', () => '127.0.0.1:0'],
    ['with a port that is too large', () => '127.0.0.1:65536'],
    ['without a host', (at: string) => at.replace('127.0.0.1', '')],
    ['of IPv6 without brackets', () => '::1:6070'],
    ['with control characters', () => 'a\u001b]0;x\u0007\nb:1', () => 'a\ufffd]0;x\ufffd\ufffdb:1'],
    ['that is empty', () => ''],
  ])('rejects an address %s, and sends nothing', async (_what, addressOf, shownOf = addressOf) => {
    const requests: unknown[] = [];
    await using api = await ApiStub.start((request, response) => {
      requests.push(request.url);
      response.end(JSON.stringify(ANSWER));
    });
    const stderr = await run(addressOf(api.address));
    expect(stderr).toContain(`: invalid address "${shownOf(api.address)}": expected host:port\nRun weir-`);
    expect(requests).toEqual([]);
  });

  withIpv6('calls an IPv6 address in brackets', async () => {
    const hosts: unknown[] = [];
    await using api = await ApiStub.start(
      ({ headers }, response) => {
        hosts.push(headers.host);
        response.end(JSON.stringify(ANSWER));
      },
      { host: '::1' },
    );
    expect(await run(api.address)).toBe('');
    expect(hosts).toEqual([api.address]);
  });

  it('calls a port that fetch does not', async () => {
    await using api = await onBlockedPort();
    await expect(fetch(`http://${api.address}/`)).rejects.toThrow('fetch failed');
    expect(await run(api.address)).toBe('');
  });
});
