import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { credentials } from '@grpc/grpc-js';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { type Container, type Rendering, renderingOf } from '../deploy/manifests';
import { ConfigMapMount, RuleTree } from '../support/data/rule-tree';
import { RateLimitClient } from '../support/clients/grpc-client';
import { type Certificate, newAuthority } from '../support/data/certificates';
import { freePorts } from '../support/processes/free-ports';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { RedisTls } from '../support/processes/redis/redis-tls';
import { WeirProcess } from '../support/processes/weir-process';
import { roomInMinute } from '../support/waiting/window-room';

const exec = promisify(execFile);

/** The folder of the mounts in the container. */
const MOUNTS = '/etc/weir';
const PASSWORD = 'mounted-password';
const TOKEN = 'mounted-operator-token';
/** The test chooses these itself. */
const PORTS = ['PORT', 'GRPC_PORT', 'DEBUG_PORT'];

/** What Kubernetes makes of a rendering: a process with its variables, and mounted files. */
class Deployed implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'weir-deployed-'));
  readonly #rules = new ConfigMapMount(new RuleTree(this.#folder), 'runtime/config');
  #weir: WeirProcess | undefined;

  constructor(
    readonly rendering: Rendering,
    readonly ruleFiles = rendering.ruleFiles!,
  ) {
    this.#rules.publish(this.ruleFiles);
  }

  get weir(): WeirProcess {
    if (this.#weir === undefined) throw new Error('it has not been started');
    return this.#weir;
  }

  /** Mounts a file that a variable names. */
  mount(path: string, text: string): void {
    const file = join(this.#folder, path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, text);
  }

  /** @param replaced variables with the addresses of the test, instead of those in a cluster */
  async start(replaced: Readonly<Record<string, string>> = {}): Promise<void> {
    const own = Object.entries(this.rendering.environment).filter(([name]) => !PORTS.includes(name));
    const env = own.map(([name, value]) => [name, value.replace(MOUNTS, this.#folder)]);
    this.#weir = await WeirProcess.start({ env: { ...Object.fromEntries(env), ...replaced } });
  }

  /** Switches the ConfigMap, as the kubelet does. */
  publishRules(files: Readonly<Record<string, string>>): void {
    this.#rules.publish(files);
  }

  /** The status of what a probe of the container asks for. */
  async probe(name: 'startupProbe' | 'livenessProbe' | 'readinessProbe'): Promise<number> {
    return (await this.weir.http(this.rendering.container[name].httpGet.path)).status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#weir?.[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true });
  }
}

/** Runs the Pod of helm test against the HTTP listener on a port. */
function runHelmTest(port: number) {
  const [test] = (renderingOf('everything').one('Pod').spec as { containers: readonly Container[] }).containers;
  const [, ...args] = test!.command!;
  return exec(
    process.execPath,
    args.map((arg) => arg.replace(/http:\/\/[^/]+\//, `http://127.0.0.1:${port}/`)),
  );
}

async function metricsAddress(): Promise<readonly [address: string, port: number]> {
  const [port] = await freePorts(1);
  return [`127.0.0.1:${port}`, port];
}

async function expectReady(deployed: Deployed): Promise<void> {
  const probes = (['startupProbe', 'livenessProbe', 'readinessProbe'] as const).map((name) => deployed.probe(name));
  expect(await Promise.all(probes)).toEqual([200, 200, 200]);
}

describe('the variant memory of deploy/kubernetes', () => {
  it('is ready, decides, serves metrics, passes helm test, and reloads rules when the ConfigMap is switched', async () => {
    const [address, port] = await metricsAddress();
    await using deployed = new Deployed(renderingOf('memory'));
    await deployed.start({ PULLMETRICS_ADDR: address });
    await expectReady(deployed);

    using client = new RateLimitClient(deployed.weir.grpcAddress);
    expect((await client.shouldRateLimit('shop', ['user=mallory'])).overallCode).toBe(Code.OVER_LIMIT);
    const metrics = await fetch(`http://127.0.0.1:${port}${deployed.rendering.environment['PULLMETRICS_PATH']}`);
    expect(await metrics.text()).toContain('ratelimit_config_loaded_at');

    expect((await runHelmTest(deployed.weir.ports.http)).stdout).toContain('"overallCode":"OK"');

    const shop = deployed.ruleFiles['shop.yaml']!;
    deployed.publishRules({ ...deployed.ruleFiles, 'shop.yaml': shop.replaceAll('mallory', 'eve') });
    await deployed.weir.until('the new rules are active', async () => {
      const { overallCode } = await client.shouldRateLimit('shop', ['user=eve']);
      return overallCode === Code.OVER_LIMIT;
    });
  });
});

describe('the variant redis of deploy/kubernetes', () => {
  it('counts in Redis with TLS, with the passwords and the token of mounted Secrets', async () => {
    using tls = new RedisTls();
    await using redis = await RedisProcess.start({
      ...tls.server,
      directives: [...tls.directives('127.0.0.1'), '--tls-auth-clients', 'no', '--requirepass', PASSWORD],
    });
    const [address] = await metricsAddress();
    await using deployed = new Deployed(renderingOf('redis'));
    for (const setting of ['KVSTORE_AUTH', 'KVSTORE_PERSECOND_AUTH']) {
      deployed.mount(`secrets/${setting}`, `${PASSWORD}\n`);
    }
    deployed.mount('secrets/OPERATOR_TOKEN', `${TOKEN}\n`);
    await deployed.start({
      KVSTORE_URL: redis.address,
      KVSTORE_PERSECOND_URL: redis.address,
      KVSTORE_TLS_CACERT: tls.files().caFile!,
      PULLMETRICS_ADDR: address,
      TRACING_ENABLED: 'false',
    });
    await expectReady(deployed);

    using client = new RateLimitClient(deployed.weir.grpcAddress);
    const login = ['path=/login,remote_address=192.0.2.1'];
    await roomInMinute();
    await client.shouldRateLimit('edge', login, 10);
    expect((await client.shouldRateLimit('edge', login)).overallCode).toBe(Code.OVER_LIMIT);
    const url = `http://127.0.0.1:${deployed.weir.ports.debug}/api/offenders`;
    const answers = [TOKEN, 'another-operator-token'].map((token) =>
      fetch(url, { headers: { Authorization: `Bearer ${token}` } }).then(({ status }) => status),
    );
    expect(await Promise.all(answers)).toEqual([200, 401]);
    expect(deployed.weir.output).not.toContain('mounted-');
  });
});

describe('the variant tls-workers of deploy/kubernetes', () => {
  it('serves clients with a certificate of the mounted CA and the required name, by several workers', async () => {
    const authority = newAuthority();
    const { GRPC_CLIENT_TLS_SAN: name } = renderingOf('tls-workers').environment;
    const [server, gateway, stranger] = [
      authority.issue('localhost'),
      authority.issue(name!),
      authority.issue('other'),
    ];
    const [address] = await metricsAddress();
    await using deployed = new Deployed(renderingOf('tls-workers'));
    deployed.mount('tls/tls.crt', server.cert);
    deployed.mount('tls/tls.key', server.key);
    deployed.mount('tls/client-ca.crt', authority.ca);
    await deployed.start({ PULLMETRICS_ADDR: address, WORKERS: '2' });
    await expectReady(deployed);

    function clientWith({ cert, key }: Certificate) {
      const channel = credentials.createSsl(Buffer.from(authority.ca), Buffer.from(key), Buffer.from(cert));
      return new RateLimitClient(`localhost:${deployed.weir.ports.grpc}`, channel);
    }
    using accepted = clientWith(gateway);
    using rejected = clientWith(stranger);
    expect((await accepted.shouldRateLimit('shop', ['user=mallory'])).overallCode).toBe(Code.OVER_LIMIT);
    await expect(rejected.shouldRateLimit('shop', ['user=mallory'])).rejects.toThrow(/UNAVAILABLE/);
    authority.dispose();
  });
});
