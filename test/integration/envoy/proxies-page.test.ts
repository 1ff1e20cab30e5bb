import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { readRequest } from '../../../src/http/json/read-request';
import { explainMatch } from '../../../src/rules/explain';
import { codeBlocksOf } from '../../docs/code-blocks';
import { rulesetOf } from '../../docs/play-decisions';
import { ROOT } from '../../docs/markdown-files';

const ENVOY = join(ROOT, '.servers/envoy/envoy/_bin/envoy');

interface Cluster {
  readonly name: string;
}
interface VirtualHost {
  rate_limits?: readonly object[];
  routes: readonly object[];
}
/** The parts of examples/envoy/envoy.yaml that the page has, too. */
interface Config {
  readonly static_resources: {
    readonly listeners: readonly [
      {
        readonly filter_chains: readonly [
          {
            readonly filters: readonly [
              {
                readonly typed_config: {
                  http_filters: readonly object[];
                  readonly route_config: { readonly virtual_hosts: readonly [VirtualHost] };
                };
              },
            ];
          },
        ];
      },
    ];
    clusters: readonly Cluster[];
  };
}
/** The members of the YAML blocks of the page that Envoy can validate; `spec` is that of an EnvoyFilter of Istio. */
interface Blocks {
  readonly http_filters: readonly object[];
  readonly clusters: readonly Cluster[];
  readonly rate_limits: readonly object[];
  readonly spec: {
    readonly configPatches: readonly { readonly applyTo: string; readonly patch: { readonly value: object } }[];
  };
}

/** The member of the only YAML block of the page that has it. */
function memberOf<Member extends keyof Blocks>(member: Member): Blocks[Member] {
  const blocks = codeBlocksOf('docs/proxies.md').filter(({ language }) => language === 'yaml');
  const found = blocks.map(({ text }) => parse(text) as Blocks).filter((block) => member in block);
  expect([member, found.length]).toEqual([member, 1]);
  return found[0]![member];
}

async function exampleConfig() {
  const config = parse(await readFile(join(ROOT, 'examples/envoy/envoy.yaml'), 'utf8')) as Config;
  const manager = config.static_resources.listeners[0].filter_chains[0].filters[0].typed_config;
  const router = manager.http_filters.at(-1)!;
  return { config, manager, router, host: manager.route_config.virtual_hosts[0] };
}

/** What Envoy says about a configuration: `OK`, or its error. */
async function validate(config: Config): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-validate-'));
  try {
    const file = join(folder, 'envoy.yaml');
    await writeFile(file, stringify(config));
    return await new Promise((resolve) => {
      execFile(ENVOY, ['--mode', 'validate', '-l', 'error', '-c', file], (error, stdout, stderr) =>
        resolve(error === null ? 'OK' : `${stdout}${stderr}`),
      );
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe('docs/proxies.md', () => {
  it('has a filter, a cluster and descriptors that Envoy accepts', async () => {
    const { config, manager, router, host } = await exampleConfig();
    const http_filters = memberOf('http_filters');
    const clusters = memberOf('clusters');
    const rate_limits = memberOf('rate_limits');
    manager.http_filters = [...http_filters, router];
    host.rate_limits = rate_limits;
    config.static_resources.clusters = [config.static_resources.clusters[0]!, ...clusters];
    expect(await validate(config)).toBe('OK');

    host.rate_limits = [{ ...rate_limits[0], action: [] }];
    expect(await validate(config)).toContain('has unknown fields');
  });

  it('has patches for Istio that insert what Envoy accepts', async () => {
    const { config, manager, router, host } = await exampleConfig();
    const spec = memberOf('spec');
    expect(spec.configPatches.map(({ applyTo }) => applyTo)).toEqual(['HTTP_FILTER', 'VIRTUAL_HOST']);
    const [filter, descriptors] = spec.configPatches.map(({ patch }) => patch.value);
    manager.http_filters = [filter!, router];
    Object.assign(host, descriptors);
    expect(await validate(config)).toBe('OK');

    manager.http_filters = [{ ...filter, typed_confg: {} }, router];
    expect(await validate(config)).toContain('has unknown fields');
  });

  it('has a body for NGINX that is a request with a limit in the rules of examples/envoy', async () => {
    const nginx = codeBlocksOf('docs/proxies.md').find(({ language }) => language === 'nginx')!;
    const [, body = ''] = /proxy_set_body '(.*)';/.exec(nginx.text) ?? [];
    const { domain, descriptors } = readRequest(body.replace('$limited_user', 'anna'));
    const rules = rulesetOf(await readFile(join(ROOT, 'examples/envoy/config/edge.yaml'), 'utf8'));
    expect(domain).toBe(rules.domain);
    expect(explainMatch(rules.ruleset, { domain, entries: descriptors[0]!.entries }).outcome).toBe('limit');
  });
});
