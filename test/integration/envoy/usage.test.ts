import type { RequestListener } from 'node:http';
import { readFileSync } from 'node:fs';
import { json } from 'node:stream/consumers';
import { join } from 'node:path';
import { parse, parseDocument } from 'yaml';
import { codeBlocksOf } from '../../docs/code-blocks';
import { ROOT } from '../../docs/markdown-files';
import { RuleFolder } from '../../support/data/rule-folder';
import { TemporaryFolder } from '../../support/data/temporary-folder';
import { EnvoyProcess } from '../../support/processes/envoy-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { MANAGER } from './envoy-pages';

// The blocks of docs/usage.md, on the Envoy of examples/tokens.

const BLOCKS = codeBlocksOf('docs/usage.md').filter(({ language }) => language === 'yaml');
const CONFIG = join(ROOT, 'examples/tokens/envoy.yaml');
const FILTERS = [...MANAGER, 'http_filters'];
const PER_ROUTE = 'typed_per_filter_config';
const ROUTE = [...MANAGER, 'route_config', 'virtual_hosts', 0, 'routes', 0];

const files = new TemporaryFolder();
afterAll(() => files[Symbol.dispose]());

function blockWith(text: string): string {
  const found = BLOCKS.filter((block) => block.text.includes(text));
  expect([text, found.length]).toEqual([text, 1]);
  return found[0]!.text;
}

/** A model, whose answers have what a call says. */
const model: RequestListener = async (incoming, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(await json(incoming)));
};

interface Played extends AsyncDisposable {
  /** Calls the model as a customer. Returns the status. */
  readonly ask: (answer: object, customer?: string) => Promise<number>;
  /** Waits until so many hits are counted in all. */
  readonly counted: (hits: number) => Promise<void>;
}

interface Setup {
  /** A rule file, and what statistics it has. */
  readonly rules: string;
  readonly statistic: string;
  /** What the route sends. */
  readonly perRoute: object;
  readonly domain: string;
  /** Where the numbers are that the model answers with, by their names. */
  readonly metadata: readonly object[];
}

async function play({ rules, statistic, perRoute, domain, metadata }: Setup): Promise<Played> {
  const folder = await RuleFolder.with({ 'usage.yaml': rules });
  const weir = await WeirProcess.start({ env: folder.env });
  const config = parseDocument(readFileSync(CONFIG, 'utf8'));
  config.setIn([...FILTERS, 0, 'typed_config', 'domain'], domain);
  config.setIn([...FILTERS, 1, 'typed_config', 'response_rules', 'rules'], metadata);
  config.setIn([...ROUTE, PER_ROUTE], perRoute);
  const file = files.write('envoy.yaml', String(config));
  const envoy = await EnvoyProcess.start({ weirPort: weir.ports.grpc, config: file, upstream: model });
  return {
    ask: async (answer, customer = 'anna') => {
      const init = { method: 'POST', headers: { 'x-customer': customer }, body: JSON.stringify(answer) };
      return (await envoy.fetch('/v1/chat', init)).status;
    },
    counted: async (hits) => {
      const name = `ratelimit.service.rate_limit.${statistic}.total_hits`;
      await weir.until(`${hits} are counted`, async () => (await weir.statistics()).get(name) === hits);
    },
    [Symbol.asyncDispose]: async () => {
      for (const used of [envoy, weir, folder]) await used[Symbol.asyncDispose]();
    },
  };
}

function from(key: string, namespace: string, name = key, type = 'NUMBER'): object {
  const target = { metadata_namespace: namespace, key: name, type };
  return { selectors: [{ key }], on_present: target };
}

const TOKENS = { statistic: 'tokens.customer', domain: 'tokens' };

it('a route asks and reports as the page of usage says, and is denied until what it has overdrawn has flowed back', async () => {
  const { [PER_ROUTE]: perRoute } = parse(blockWith('%DYNAMIC_METADATA(usage:total_tokens)%')) as Record<
    string,
    object
  >;
  const metadata = [from('total_tokens', 'usage')];
  await using played = await play({ ...TOKENS, rules: blockWith('domain: tokens'), perRoute: perRoute!, metadata });
  const { ask, counted } = played;
  expect([await ask({ total_tokens: 4_000 }), await ask({})]).toEqual([200, 200]);
  await counted(4_000);
  expect(await ask({ total_tokens: 3_000 })).toBe(200);
  await counted(7_000);
  // The report of a call that was denied has no metadata, and is not sent.
  expect([await ask({ total_tokens: 9 }), await ask({ total_tokens: 9 }, 'bert')]).toEqual([429, 200]);
  await counted(7_009);
});

it('what Envoy Gateway sends for token limits of Envoy AI Gateway asks, and reports what a response has cost', async () => {
  const actions = [{ request_headers: { header_name: 'x-customer', descriptor_key: 'customer' } }];
  const perRoute = perRouteOf([
    { actions, hits_addend: { number: 0 } },
    { actions, hits_addend: { format: '%DYNAMIC_METADATA(io.envoy.ai_gateway:llm_total_token)%' }, ...ON_STREAM_DONE },
  ]);
  const metadata = [from('total', 'io.envoy.ai_gateway', 'llm_total_token')];
  await using played = await play({ ...TOKENS, rules: blockWith('domain: tokens'), perRoute, metadata });
  const { ask, counted } = played;
  expect(await ask({ total: 5_500 })).toBe(200);
  await counted(5_500);
  expect(await ask({ total: 1 })).toBe(429);
});

it('what Envoy AI Gateway sends for a QuotaPolicy asks each backend, and reports to the one that has served', async () => {
  const perRoute = perRouteOf([
    ...['default/one', 'default/two'].map((backend) => ({
      actions: [generic('backend_name', backend), generic('model_name_override', 'm')],
    })),
    {
      actions: [fromMetadata('ai_service_backend_name', 'backend_name'), fromMetadata('model_name_override')],
      hits_addend: { format: '%DYNAMIC_METADATA(io.envoy.ai_gateway:quota_cost)%' },
      ...ON_STREAM_DONE,
    },
  ]);
  const metadata = [
    from('backend', 'io.envoy.ai_gateway', 'ai_service_backend_name', 'STRING'),
    from('model', 'io.envoy.ai_gateway', 'model_name_override', 'STRING'),
    from('cost', 'io.envoy.ai_gateway', 'quota_cost'),
  ];
  const rules = blockWith('domain: ai-gateway-quota');
  const statistic = 'ai-gateway-quota.backend_name.model_name_override';
  await using played = await play({ statistic, domain: 'ai-gateway-quota', rules, perRoute, metadata });
  const { ask, counted } = played;
  expect(await ask({ backend: 'default/one', model: 'm', cost: 200_000 })).toBe(200);
  await counted(200_000);
  // The other backend has all of its quota.
  expect(await ask({ backend: 'default/two', model: 'm', cost: 300_000 })).toBe(200);
  await counted(500_000);
  expect(await ask({ backend: 'default/two', model: 'm', cost: 1 })).toBe(429);
});

const ON_STREAM_DONE = { apply_on_stream_done: true };

function perRouteOf(limits: readonly object[]): object {
  const type = 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute';
  return { 'envoy.filters.http.ratelimit': { '@type': type, rate_limits: limits } };
}

function generic(key: string, value: string): object {
  return { generic_key: { descriptor_key: key, descriptor_value: value } };
}

function fromMetadata(key: string, descriptorKey = key): object {
  return { metadata: { descriptor_key: descriptorKey, metadata_key: { key: 'io.envoy.ai_gateway', path: [{ key }] } } };
}
