import { RuleFolder } from '../../support/data/rule-folder';
import { TemporaryFolder } from '../../support/data/temporary-folder';
import { EnvoyProcess } from '../../support/processes/envoy-process';
import { freePorts } from '../../support/processes/free-ports';
import { WeirProcess } from '../../support/processes/weir-process';
import { CLUSTER, exampleWith, memberOf } from './envoy-pages';

const RULES = 'domain: edge\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1000000 } }]\n';

/** The filter and the cluster of docs/proxies.md with two instances; what cannot be decided fails. */
async function configOf(otherPort: number): Promise<string> {
  const config = await exampleWith({ ...memberOf('http_filters')[0] });
  const lb_endpoints = [8081, otherPort].map((port_value) => ({
    endpoint: { address: { socket_address: { address: '127.0.0.1', port_value } } },
  }));
  const load_assignment = { cluster_name: 'weir', endpoints: [{ lb_endpoints }] };
  config.setIn(CLUSTER, { ...memberOf('clusters')[0], load_assignment });
  return String(config);
}

/** Sends 120 requests per second, whatever becomes of those before, and keeps the status of each. */
function traffic(envoy: EnvoyProcess) {
  const statuses: Promise<number>[] = [];
  const timer = setInterval(() => {
    for (let request = 0; request < 3; request += 1) {
      statuses.push(envoy.get('/', { 'x-user': 'anna' }).then(({ status }) => status));
    }
  }, 25);
  return { statuses, [Symbol.dispose]: () => clearInterval(timer) };
}

/** The instances of the test, by port of gRPC; each is replaced by another one on its port. */
class Instances implements AsyncDisposable {
  readonly #rules: RuleFolder;
  readonly #running = new Map<number, WeirProcess>();

  constructor(rules: RuleFolder) {
    this.#rules = rules;
  }

  /** Starts an instance with the default of SHUTDOWN_DELAY. */
  async start(port: number, workers: string): Promise<void> {
    const env = { ...this.#rules.env, WORKERS: workers, SHUTDOWN_DELAY: '', GRPC_PORT: String(port) };
    this.#running.set(port, await WeirProcess.start({ env }));
  }

  /** Waits until Envoy uses an instance. */
  async called(port: number): Promise<void> {
    const weir = this.#running.get(port)!;
    await weir.until('Envoy to call it', async () => {
      const calls = (await weir.statistics()).get('ratelimit_server.ShouldRateLimit.total_requests') ?? 0;
      return calls > 100;
    });
  }

  async end(port: number): Promise<void> {
    const weir = this.#running.get(port)!;
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  }

  async kill(port: number): Promise<void> {
    const weir = this.#running.get(port)!;
    weir.signal('SIGKILL');
    await weir.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const weir of this.#running.values()) await weir[Symbol.asyncDispose]();
  }
}

/** What Envoy has counted about the cluster of weir. */
async function statisticOf({ adminPort }: EnvoyProcess, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/stats?filter=^cluster.weir.${name}$`)).text();
  return Number(/: (\d+)$/m.exec(text)?.[1]);
}

/** Envoy with failure_mode_deny in front of an instance on each of the ports. */
async function envoyBefore(folder: TemporaryFolder, [one, other]: readonly [number, number]): Promise<EnvoyProcess> {
  return EnvoyProcess.start({
    weirPort: one,
    config: folder.write('envoy.yaml', await configOf(other)),
    changes: [
      ['failure_mode_deny: false', 'failure_mode_deny: true'],
      // A busy machine must not fail a health check.
      ['timeout: 1s', 'timeout: 10s'],
    ],
  });
}

it('Envoy saves most requests of an instance that is killed by a second try of the other one', async () => {
  await using rules = await RuleFolder.with({ 'edge.yaml': RULES });
  await using instances = new Instances(rules);
  const [one, other] = await freePorts(2);
  for (const port of [one, other]) await instances.start(port, '1');
  using folder = new TemporaryFolder();
  await using envoy = await envoyBefore(folder, [one, other]);
  using requests = traffic(envoy);
  for (const port of [one, other]) await instances.called(port);
  await instances.kill(other);
  await envoy.until('Envoy to notice it', async () => (await statisticOf(envoy, 'membership_healthy')) === 1);
  requests[Symbol.dispose]();
  const failed = (await Promise.all(requests.statuses)).filter((status) => status !== 200).length;
  const saved = await statisticOf(envoy, 'upstream_rq_retry_success');
  expect({ saved, failed, isBetter: saved > failed }).toMatchObject({ isBetter: true });
  expect(await statisticOf(envoy, 'upstream_rq_retry_overflow')).toBe(0);
});

it('Envoy fails no request while two instances are replaced twice, one after the other, with failure_mode_deny', async () => {
  await using rules = await RuleFolder.with({ 'edge.yaml': RULES });
  await using instances = new Instances(rules);
  const [one, other] = await freePorts(2);
  const all = [
    [one, '1'],
    [other, '2'],
  ] as const;
  for (const [port, workers] of all) await instances.start(port, workers);
  using folder = new TemporaryFolder();
  await using envoy = await envoyBefore(folder, [one, other]);
  using requests = traffic(envoy);
  for (const [port] of all) await instances.called(port);
  for (const [port, workers] of [...all, ...all]) {
    await instances.end(port);
    await instances.start(port, workers);
    await instances.called(port);
  }
  requests[Symbol.dispose]();
  const statuses = await Promise.all(requests.statuses);
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  expect(statuses.length).toBeGreaterThan(1_000);
});
