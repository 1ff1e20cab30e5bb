import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Document, parse, parseDocument } from 'yaml';
import { codeBlocksOf } from '../../docs/code-blocks';
import { ROOT } from '../../docs/markdown-files';

/** The members of the YAML blocks of docs/proxies.md that are for Envoy; `spec` is that of an EnvoyFilter of Istio. */
interface Blocks {
  readonly kind?: string;
  readonly http_filters: readonly object[];
  readonly clusters: readonly object[];
  readonly rate_limits: readonly object[];
  readonly spec: {
    readonly configPatches: readonly { readonly applyTo: string; readonly patch: { readonly value: object } }[];
  };
}

/** The member of the only YAML block of the page that has it. */
export function memberOf<Member extends keyof Blocks>(member: Member): Blocks[Member] {
  const blocks = codeBlocksOf('docs/proxies.md').filter(({ language }) => language === 'yaml');
  const found = blocks
    .map(({ text }) => parse(text) as Blocks)
    .filter((block) => member in block && /^(?:EnvoyFilter)?$/.test(block.kind ?? ''));
  expect([member, found.length]).toEqual([member, 1]);
  return found[0]![member];
}

const LISTENER = ['static_resources', 'listeners', 0];
export const MANAGER = [...LISTENER, 'filter_chains', 0, 'filters', 0, 'typed_config'];
export const HOST = [...MANAGER, 'route_config', 'virtual_hosts', 0];
/** The cluster of weir. */
export const CLUSTER = ['static_resources', 'clusters', 1];

/** The configuration of examples/envoy with another filter before the router. */
export async function exampleWith(filter: object): Promise<Document> {
  const config = parseDocument(await readFile(join(ROOT, 'examples/envoy/envoy.yaml'), 'utf8'));
  config.setIn([...MANAGER, 'http_filters', 0], filter);
  return config;
}
