import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { ADMIN } from '../../src/cli/admin/admin';
import type { Fleet } from '../../src/operators/live-answers';
import { type Authority, newAuthority, selfSigned } from '../support/data/certificates';
import { SecretMount } from '../support/data/secret-mount';
import { freePorts } from '../support/processes/free-ports';
import { runOf } from '../cli/run-program';
import { Shop } from './shop';

const DIST = join(__dirname, '../../dist');
const TOKEN = 'token-of-these-tests';
const DAY = 86_400_000;

let authority: Authority;
beforeAll(() => (authority = newAuthority()));
afterAll(() => authority.dispose());

/** The exit code of the health check of containers, and what it prints. */
async function probe(env: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [join(DIST, 'cli/health-probe.js')], { env });
  const [output, [code]] = await Promise.all([textOf(child.stderr), once(child, 'close')]);
  return [code, output];
}

function admin(argv: readonly string[], env: Readonly<Record<string, string>>) {
  return runOf(ADMIN, argv, env);
}

function filesOf(mount: SecretMount): { readonly DEBUG_TLS_CERT: string; readonly DEBUG_TLS_KEY: string } {
  return { DEBUG_TLS_CERT: mount.path('tls.crt'), DEBUG_TLS_KEY: mount.path('tls.key') };
}

it('the debug listener has TLS, which the programs with its settings find, and reads its files again', async () => {
  const [one, two] = [authority.issue('weir-one'), authority.issue('localhost')];
  using mount = new SecretMount({ 'tls.crt': one.cert, 'tls.key': one.key, 'ca.crt': authority.ca });
  const [port] = await freePorts(1);
  const env = { ...filesOf(mount), DEBUG_PORT: String(port), DEBUG_HOST: '127.0.0.1', OPERATOR_TOKEN: TOKEN };
  await using shop = await Shop.start({ env });
  expect(await probe(env)).toEqual([0, '']);
  expect(await admin(['health'], env)).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^healthy\n/) });
  // By another name, with the authority of the certificate, which does not have this name yet.
  const named = ['health', '-address', `https://localhost:${port}`, '-ca_file', mount.path('ca.crt')];
  expect(await admin(named, {})).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('altnames') });
  expect(await admin(['health', '-address', `localhost:${port}`], {})).toMatchObject({ exitCode: 1 });

  mount.replace({ 'tls.crt': two.cert, 'tls.key': two.key, 'ca.crt': authority.ca });
  await shop.weir.line(/new certificates of the debug listener loaded/);
  expect(await admin(named, {})).toMatchObject({ exitCode: 0 });
  mount.replace({ 'tls.crt': two.cert, 'tls.key': one.key, 'ca.crt': authority.ca });
  await shop.weir.line(/level=error.*new certificates of the debug listener rejected; keeping the current ones/);
  expect(await admin(named, {})).toMatchObject({ exitCode: 0 });
  await shop.drain();
});

it('instances with one certificate of their own show each other over TLS', async () => {
  const shared = selfSigned(new Date(Date.now() - DAY), new Date(Date.now() + 90 * DAY));
  using mount = new SecretMount({ 'tls.crt': shared.cert, 'tls.key': shared.key });
  const ports = await freePorts(2);
  // It has no name but in its subject, which is none of an address.
  const peers = ports.map((port) => `https://127.0.0.1:${port}`).join();
  const env = { ...filesOf(mount), OPERATOR_TOKEN: TOKEN, OPERATOR_PEERS: peers };
  await using one = await Shop.start({ env: { ...env, DEBUG_PORT: String(ports[0]) } });
  await using other = await Shop.start({ env: { ...env, DEBUG_PORT: String(ports[1]) } });
  expect(other.weir.isRunning).toBe(true);
  const own = { ...filesOf(mount), DEBUG_PORT: String(ports[0]), OPERATOR_TOKEN: TOKEN };
  // The first one has asked the other before that listened, and asks again.
  await one.weir.until('the instances see each other', async () => {
    const { stdout } = await admin(['health', '-fleet', '-json'], own);
    const { instances } = JSON.parse(stdout) as Fleet;
    return instances.length === 2 && instances.every(({ problem }) => problem === null);
  });
  expect(one.weir.output).not.toContain(TOKEN);
});

it.each([
  [{ DEBUG_TLS_CERT: '/tls.crt' }, 'DEBUG_TLS_CERT is set, but DEBUG_TLS_KEY is not'],
  [{ DEBUG_TLS_CERT: '/nothing.crt', DEBUG_TLS_KEY: '/nothing.key' }, 'cannot use DEBUG_TLS_CERT=/nothing.crt'],
])('the service does not start with %j', async (env, message) => {
  await using shop = await Shop.start({ env, awaitServing: false });
  expect(await shop.weir.exited).toBe(1);
  expect(shop.weir.output).toContain(message);
});
