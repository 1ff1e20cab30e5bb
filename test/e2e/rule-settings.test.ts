import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RuleFolder } from '../support/data/rule-folder';
import { ruleResource } from '../support/data/rule-resources';
import { domainConfig, limit } from '../support/data/rules';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';

function ruleFile(key: string): string {
  return `domain: shop\ndescriptors: [{key: ${key}, rate_limit: {unit: day, requests_per_unit: 5}}]\n`;
}

describe('RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY', () => {
  /** Each folder has a rule that is named after it. */
  const FOLDERS = ['.', 'config', 'limits', 'edge/eu', 'edge/eu/config', 'edge/eu/limits', 'edge/eu/limits/nested'];
  let root: RuleFolder;
  beforeAll(async () => {
    root = await RuleFolder.with({});
    for (const folder of FOLDERS) {
      const path = join(root.root, folder, `${keyOf(folder)}.yaml`);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, ruleFile(keyOf(folder)).replace('shop', keyOf(folder)));
    }
  });
  afterAll(() => root[Symbol.asyncDispose]());

  function keyOf(folder: string): string {
    return folder === '.' ? 'root' : folder.replaceAll('/', '-');
  }

  it.each<[env: Readonly<Record<string, string>>, folders: readonly string[]]>([
    [{ RUNTIME_SUBDIRECTORY: 'edge/eu' }, ['edge/eu/config']],
    [{ RUNTIME_SUBDIRECTORY: 'edge/eu', RUNTIME_APPDIRECTORY: 'limits' }, ['edge/eu/limits', 'edge/eu/limits/nested']],
    [{ RUNTIME_SUBDIRECTORY: 'edge', RUNTIME_APPDIRECTORY: 'eu/limits/nested' }, ['edge/eu/limits/nested']],
  ])('are joined to the folder of the rule files: %j', async (env, folders) => {
    await using weir = await WeirProcess.start({ env: { RUNTIME_ROOT: root.root, ...env } });
    const rules = (await weir.debug('/rlconfig')).split('\n').filter((line) => line.includes('requests_per_unit'));
    expect(rules.map((line) => line.slice(0, line.indexOf('.'))).toSorted()).toEqual(folders.map(keyOf).toSorted());
  });
});

describe.each(['rule files', 'an xDS server'])('MERGE_DOMAIN_CONFIG with %s', (source) => {
  let files: RuleFolder;
  let ads: AdsServer;
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    files = await RuleFolder.with({ 'a.yaml': ruleFile('left'), 'b.yaml': ruleFile('right') });
    const cache = new SnapshotCache();
    cache.publish('1', [
      ruleResource('a', domainConfig('shop', { key: 'left', rateLimit: limit(5, 'DAY') })),
      ruleResource('b', domainConfig('shop', { key: 'right', rateLimit: limit(5, 'DAY') })),
    ]);
    ads = await AdsServer.start({ cache });
    env =
      source === 'rule files' ? files.env : { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: ads.address };
  });
  afterAll(async () => {
    await ads[Symbol.asyncDispose]();
    await files[Symbol.asyncDispose]();
  });

  it('joins the rules of several files or resources for the same domain when it is true', async () => {
    await using weir = await WeirProcess.start({ env: { ...env, MERGE_DOMAIN_CONFIG: 'true' } });
    const rules = await weir.debug('/rlconfig');
    expect([rules, rules]).toEqual([expect.stringContaining('shop.left: '), expect.stringContaining('shop.right: ')]);
  });

  it('rejects them by default', async () => {
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.line(/rules rejected/)).toMatch(/duplicate domain 'shop'/);
    expect(await weir.debug('/rlconfig')).not.toContain('shop.');
  });
});
