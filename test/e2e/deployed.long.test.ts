import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { type Container, type Rendering, renderingOf } from '../deploy/manifests';
import { ConfigMapMount, RuleTree } from '../support/data/rule-tree';
import { RateLimitClient } from '../support/clients/grpc-client';
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
  private constructor(
    readonly rendering: Rendering,
    readonly weir: WeirProcess,
    readonly rules: ConfigMapMount,
    readonly folder: RuleTree,
  ) {}

  /**
   * @param mounts texts of the files that variables name
   * @param replaced variables with the addresses of the test, instead of those in a cluster
   * @returns when all probes of the container succeed
   */
  static async start(
    variant: string,
    mounts: Readonly<Record<string, string>>,
    replaced: Readonly<Record<string, string>>,
  ): Promise<Deployed> {
    const rendering = renderingOf(variant);
    const folder = new RuleTree();
    const rules = new ConfigMapMount(folder, 'runtime/config');
    rules.publish(rendering.ruleFiles!);
    for (const [path, text] of Object.entries(mounts)) folder.write(path, text);
    const own = Object.entries(rendering.environment).filter(([name]) => !PORTS.includes(name));
    const env = Object.fromEntries(own.map(([name, value]) => [name, value.replace(MOUNTS, folder.base)]));
    const weir = await WeirProcess.start({ env: { ...env, ...replaced } });
    const { startupProbe, livenessProbe, readinessProbe } = rendering.container;
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
      expect((await weir.http(httpGet.path)).status).toBe(200);
    }
    return new Deployed(rendering, weir, rules, folder);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.weir[Symbol.asyncDispose]();
    this.folder[Symbol.dispose]();
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

describe('the variant of deploy/kubernetes', () => {
  it('memory is ready, decides, serves metrics, passes helm test, and reloads rules when the ConfigMap is switched', async () => {
    const [port] = await freePorts(1);
    await using deployed = await Deployed.start('memory', {}, { PULLMETRICS_ADDR: `127.0.0.1:${port}` });
    const files = deployed.rendering.ruleFiles!;

    using client = new RateLimitClient(deployed.weir.grpcAddress);
    expect((await client.shouldRateLimit('shop', ['user=mallory'])).overallCode).toBe(Code.OVER_LIMIT);
    const metrics = await fetch(`http://127.0.0.1:${port}${deployed.rendering.environment['PULLMETRICS_PATH']}`);
    expect(await metrics.text()).toContain('ratelimit_config_loaded_at');

    expect((await runHelmTest(deployed.weir.ports.http)).stdout).toContain('"overallCode":"OK"');

    deployed.rules.publish({ ...files, 'shop.yaml': files['shop.yaml']!.replaceAll('mallory', 'eve') });
    await deployed.weir.until('the new rules are active', async () => {
      const { overallCode } = await client.shouldRateLimit('shop', ['user=eve']);
      return overallCode === Code.OVER_LIMIT;
    });
  });

  it('redis counts in Redis with TLS, with the passwords and the token of mounted Secrets', async () => {
    using tls = new RedisTls();
    await using redis = await RedisProcess.start({
      ...tls.server,
      directives: [...tls.directives('127.0.0.1'), '--tls-auth-clients', 'no', '--requirepass', PASSWORD],
    });
    const passwords = { 'secrets/KVSTORE_AUTH': PASSWORD, 'secrets/KVSTORE_PERSECOND_AUTH': `${PASSWORD}\n` };
    const replaced = {
      KVSTORE_URL: redis.address,
      KVSTORE_PERSECOND_URL: redis.address,
      KVSTORE_TLS_CACERT: tls.files().cacert!,
      PULLMETRICS_ADDR: '127.0.0.1:0',
      TRACING_ENABLED: 'false',
    };
    const mounts = { ...passwords, 'secrets/OPERATOR_TOKEN': TOKEN };
    await using deployed = await Deployed.start('redis', mounts, replaced);

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
