import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ruleFileSource } from '../../src/sources/rule-files/rule-file-source';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';
import { ruleResource, simpleResource } from '../support/data/rule-resources';
import { domainConfig } from '../support/data/rules';
import { xdsSource } from '../support/data/xds-rules';
import { type RuleSourceRig, describeRuleSource } from './rule-source-contract';
import { HINTS_ONLY } from './rule-files/watched-rules';

/** Long enough for files to be scanned, which nothing reports. */
const QUIET = 250;

function ruleFile(domain: string, limit: number) {
  return `domain: ${domain}\ndescriptors: [{key: key, rate_limit: {unit: minute, requests_per_unit: ${limit}}}]\n`;
}

/** Folders of files, between which a link is switched. */
async function switchedFolders(): Promise<RuleSourceRig> {
  const base = await mkdtemp(join(tmpdir(), 'weir-contract-'));
  const root = join(base, 'current');
  const folders = new Map<string, string>();
  async function publish(files: Readonly<Record<string, string>>) {
    const contents = JSON.stringify(files);
    const folder = folders.get(contents) ?? join(base, `rules-${folders.size}`);
    folders.set(contents, folder);
    await mkdir(join(folder, 'config'), { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'config', name), text);
    await symlink(folder, join(base, 'next'));
    await rename(join(base, 'next'), root);
  }
  return {
    source: ruleFileSource({
      root,
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: true,
      mergeDomainConfigs: false,
      timing: HINTS_ONLY,
    }),
    publish: (limits) =>
      publish(
        Object.fromEntries(Object.entries(limits).map(([name, limit]) => [`${name}.yaml`, ruleFile(name, limit)])),
      ),
    publishInvalid: () => publish({ 'shop.yaml': 'domain: shop\ndescriptors: [{key: ""}]\n' }),
    settled: () => wait(QUIET),
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  };
}

/** Files in one folder, each of which is written or removed. */
async function filesInPlace(): Promise<RuleSourceRig> {
  const root = await mkdtemp(join(tmpdir(), 'weir-contract-'));
  const folder = join(root, 'config');
  await mkdir(folder);
  let present = new Map<string, string>();
  async function publish(files: ReadonlyMap<string, string>) {
    // No intermediate state may be seen: at once, and new files first, because a folder without them would be valid too.
    for (const [name, text] of files) {
      if (present.get(name) !== text) {
        writeFileSync(join(root, 'new~'), text);
        renameSync(join(root, 'new~'), join(folder, name));
      }
    }
    for (const name of present.keys()) if (!files.has(name)) rmSync(join(folder, name));
    present = new Map(files);
  }
  return {
    source: ruleFileSource({
      root,
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: false,
      mergeDomainConfigs: false,
      timing: HINTS_ONLY,
    }),
    publish: (limits) =>
      publish(new Map(Object.entries(limits).map(([name, limit]) => [`${name}.yaml`, ruleFile(name, limit)]))),
    publishInvalid: () => publish(new Map([['shop.yaml', 'domain: shop\ndescriptors: [{key: ""}]\n']])),
    settled: () => wait(QUIET),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

/** A management server that gives each change a new version. */
async function managementServer(): Promise<RuleSourceRig> {
  const cache = new SnapshotCache(true);
  const server = await AdsServer.start({ cache });
  let version = 0;
  let published = '';
  function publish(key: string, resources: Parameters<SnapshotCache['publish']>[1]) {
    if (key !== published) version += 1;
    published = key;
    cache.publish(String(version), resources);
    return Promise.resolve();
  }
  return {
    source: xdsSource({ target: server.address }),
    publish: (limits) =>
      publish(
        JSON.stringify(limits),
        Object.entries(limits).map(([name, limit]) => simpleResource(name, limit)),
      ),
    publishInvalid: () => publish('invalid', [ruleResource('shop', domainConfig('shop', { key: '' }))]),
    async settled() {
      while (server.requests.at(-1)?.versionInfo !== String(version)) await wait(5);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

describeRuleSource('files behind a switched link', switchedFolders);
describeRuleSource('files that change in place', filesInPlace);
describeRuleSource('a management server', managementServer);
