import { execFileSync } from 'node:child_process';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { type Container, ROOT, renderingOf } from '../deploy/manifests';
import { ConfigMapMount, RuleTree } from '../support/data/rule-tree';
import { RateLimitClient } from '../support/clients/grpc-client';
import { freePorts } from '../support/processes/free-ports';
import { WeirProcess } from '../support/processes/weir-process';

/** The folder of the mounts in the container. */
const MOUNTS = '/etc/weir';
/** The test chooses these itself. */
const PORTS = ['PORT', 'GRPC_PORT', 'DEBUG_PORT'];

/** What the containers of helm test print about a folder of rules, and about the HTTP listener on a port. */
function runHelmTest(rules: string, port: number): readonly string[] {
  const { containers } = renderingOf('memory').one('Pod').spec as { containers: readonly Container[] };
  return containers.map(({ command }) => {
    const [, ...args] = command!.map((arg) =>
      arg
        .replace(/http:\/\/[^/]+\//, `http://127.0.0.1:${port}/`)
        .replace(/^\/app\//, `${ROOT}/`)
        .replace(/^\/etc\/weir\/runtime\/config$/, rules),
    );
    return execFileSync(process.execPath, args, { encoding: 'utf8' });
  });
}

it('the variant memory of the chart is ready, decides, serves metrics, passes helm test, and reloads its rules', async () => {
  const { ruleFiles, environment, container } = renderingOf('memory');
  using folder = new RuleTree();
  const rules = new ConfigMapMount(folder, 'runtime/config');
  rules.publish(ruleFiles!);
  const own = Object.entries(environment).filter(([name]) => !PORTS.includes(name));
  const env = Object.fromEntries(own.map(([name, value]) => [name, value.replace(MOUNTS, folder.base)]));
  const [port] = await freePorts(1);
  await using weir = await WeirProcess.start({ env: { ...env, PULLMETRICS_ADDR: `127.0.0.1:${port}` } });
  for (const { httpGet } of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
    expect((await weir.http(httpGet.path)).status).toBe(200);
  }

  using client = new RateLimitClient(weir.grpcAddress);
  expect((await client.shouldRateLimit('shop', ['user=mallory'])).overallCode).toBe(Code.OVER_LIMIT);
  const metrics = await fetch(`http://127.0.0.1:${port}${environment['PULLMETRICS_PATH']}`);
  expect(await metrics.text()).toContain('ratelimit_config_loaded_at');
  expect(runHelmTest(folder.at('runtime/config'), weir.ports.http)).toEqual([
    expect.stringMatching(/^passed: 2 files, /),
    expect.stringContaining('"overallCode":"OK"'),
  ]);

  rules.publish({ ...ruleFiles, 'shop.yaml': ruleFiles!['shop.yaml']!.replaceAll('mallory', 'eve') });
  await weir.until('the new rules are active', async () => {
    return (await client.shouldRateLimit('shop', ['user=eve'])).overallCode === Code.OVER_LIMIT;
  });
});
