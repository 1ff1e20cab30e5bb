import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDocument } from 'yaml';
import { readRequest } from '../../../src/http/json/read-request';
import { followMatch } from '../../../src/explain/match';
import { codeBlocksOf } from '../../docs/code-blocks';
import { rulesetOf } from '../../docs/play-decisions';
import { ROOT } from '../../docs/markdown-files';
import { ENVOY, EnvoyProcess } from '../../support/processes/envoy-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { roomInMinute } from '../../support/waiting/window-room';
import { TemporaryFolder } from '../../support/data/temporary-folder';
import { CLUSTER, HOST, exampleWith, memberOf } from './envoy-pages';

const COMPOSE = join(ROOT, 'deploy/compose/envoy.yaml');

const folder = new TemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

/** What a program that ends with 0 prints, and undefined for another code. */
function run(program: string, args: readonly string[]): Promise<{ readonly isOk: boolean; readonly output: string }> {
  return new Promise((resolve) => {
    execFile(program, args, (error, stdout, stderr) => resolve({ isOk: error === null, output: stdout + stderr }));
  });
}

/** What Envoy says about a configuration: `OK`, or its error. */
async function validate(config: string): Promise<string> {
  const file = folder.write('envoy.yaml', config);
  const options = ['--mode', 'validate', '-l', 'error', '--disable-hot-restart', '--base-id-path', folder.at('id')];
  const { isOk, output } = await run(ENVOY, [...options, '-c', file]);
  return isOk ? 'OK' : output;
}

describe('docs/proxies.md', () => {
  it('has a filter, a cluster and descriptors that Envoy accepts', async () => {
    const rate_limits = memberOf('rate_limits');
    const config = await exampleWith(memberOf('http_filters')[0]!);
    config.setIn([...HOST, 'rate_limits'], rate_limits);
    config.setIn(CLUSTER, memberOf('clusters')[0]);
    expect(await validate(String(config))).toBe('OK');

    config.setIn([...HOST, 'rate_limits'], [{ ...rate_limits[0], action: [] }]);
    expect(await validate(String(config))).toContain('has unknown fields');
  });

  it('names a field by which the dynamic metadata of weir has a namespace of its own in Envoy', async () => {
    expect(await readFile(join(ROOT, 'docs/proxies.md'), 'utf8')).toContain('`metadata_namespace: example.limits`');
    const env = { RUNTIME_ROOT: join(ROOT, 'examples/envoy'), RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' };
    await using weir = await WeirProcess.start({ env: { ...env, RESPONSE_DYNAMIC_METADATA: 'true' } });
    const header = `header: { key: x-domains, value: '%DYNAMIC_METADATA(example.limits:domain)%' }`;
    const changes = [
      [
        'failure_mode_deny: false',
        'failure_mode_deny: false\n                      metadata_namespace: example.limits',
      ],
      ['domains: ["*"]', `domains: ["*"]\n                      response_headers_to_add: [{ ${header} }]`],
    ] as const;
    await using envoy = await EnvoyProcess.start({ weirPort: weir.ports.grpc, changes });
    expect((await envoy.get('/', { 'x-user': 'anna' })).headers.get('x-domains')).toBe('edge');
  });

  it('has patches for Istio that insert what Envoy accepts', async () => {
    const { configPatches } = memberOf('spec');
    expect(configPatches.map(({ applyTo }) => applyTo)).toEqual(['HTTP_FILTER', 'VIRTUAL_HOST']);
    const [filter, descriptors] = configPatches.map(({ patch }) => patch.value);
    const config = await exampleWith(filter!);
    for (const [name, value] of Object.entries(descriptors!)) config.setIn([...HOST, name], value);
    expect(await validate(String(config))).toBe('OK');
    expect(await validate(String(await exampleWith({ ...filter, typed_confg: {} })))).toContain('has unknown fields');
  });

  it('has a body for NGINX that is a request with a limit in the rules of examples/envoy', async () => {
    const nginx = codeBlocksOf('docs/proxies.md').find(({ language }) => language === 'nginx')!;
    const [, body = ''] = /proxy_set_body '(.*)';/.exec(nginx.text) ?? [];
    const { domain, descriptors } = readRequest(body.replace('$limited_user', 'anna'));
    const rules = rulesetOf(await readFile(join(ROOT, 'examples/envoy/config/edge.yaml'), 'utf8'));
    expect(domain).toBe(rules.domain);
    expect(followMatch(rules.ruleset, { domain, entries: descriptors[0]!.entries }).outcome).toBe('limit');
  });
});

it('deploy/compose limits with the rules that compose.yaml mounts, and its health check sees a live Envoy only', async () => {
  const env = { RUNTIME_ROOT: join(ROOT, 'examples/envoy'), RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' };
  await using weir = await WeirProcess.start({ env });
  const changes = [
    // The upstream of the test takes the place of this listener, which gets an address of its own.
    [
      'address: { socket_address: { address: 127.0.0.1, port_value: 9000 } }\n      filter_chains',
      `address: { pipe: { path: ${folder.at('upstream.sock')} } }\n      filter_chains`,
    ],
    ['address: weir,', 'address: 127.0.0.1,'],
    ['address: 0.0.0.0,', 'address: 127.0.0.1,'],
  ] as const;
  const compose = parseDocument(await readFile(join(ROOT, 'compose.yaml'), 'utf8'));
  const check = compose.toJS().services.envoy.healthcheck.test as readonly [string, string, ...string[]];
  const [, shell, ...args] = check;
  async function isLive(port: number): Promise<boolean> {
    const live = args.map((text) => text.replace('/9901', `/${port}`));
    return (await run(shell, live)).isOk;
  }
  let adminPort: number;
  {
    await using envoy = await EnvoyProcess.start({ weirPort: weir.ports.grpc, config: COMPOSE, changes });
    adminPort = envoy.adminPort;
    await roomInMinute();
    const statuses: number[] = [];
    for (let call = 0; call < 4; call += 1) statuses.push((await envoy.get('/orders', { 'x-user': 'anna' })).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    expect(await isLive(adminPort)).toBe(true);
  }
  expect(await isLive(adminPort)).toBe(false);
});
