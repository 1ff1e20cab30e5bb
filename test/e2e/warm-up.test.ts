import { execFileSync } from 'node:child_process';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { VERSION } from '../../src/version';
import { CACHE_NAME, checkedCode, digestOf } from '../../src/code-cache';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { CopiedBuild, builtProgram, damages, node } from './copied-build';
import { Shop } from './shop';

describe.each(['1', '2'])('before it serves, the service with WORKERS=%s', (WORKERS) => {
  it('has run calls, of which nothing is left in the store, the statistics and the log', async () => {
    await using redis = await RedisProcess.start();
    const env = { WORKERS, BACKEND_TYPE: 'redis', REDIS_URL: redis.address, LOG_LEVEL: 'debug', DECISION_LOG: 'all' };
    await using shop = await Shop.start({ env });

    const [, answers] = /msg="warmed up" .*?answers=(\d+)/.exec(await shop.weir.line(/"warmed up"/)) ?? [];
    expect(Number(answers)).toBeGreaterThan(0);
    expect(await redis.control.dbsize()).toBe(0);
    const counted = [...(await shop.weir.statistics())].filter(
      ([name, value]) => value > 0 && /should_rate_limit|rate_limit\.|^ratelimit_server\.|pipeline/i.test(name),
    );
    expect(counted).toEqual([]);
    expect(shop.weir.output).not.toMatch(/decision|failed/);
  });
});

describe('the code cache', () => {
  it('is used: V8 accepts it for the bundle of the build', async () => {
    await builtProgram();
    const script = `
      const { readFileSync } = require('node:fs');
      const { CACHE_NAME, readCode } = require('./dist/code-cache.js');
      const source = readFileSync('dist/main.bundle.js');
      const cachedData = readCode('dist/' + CACHE_NAME, source);
      const { cachedDataRejected } = new (require('node:vm').Script)(source.toString('latin1'), { cachedData });
      console.log(cachedDataRejected);`;
    expect(await node('-e', script)).toBe('false\n');
  });

  it('is checked before it is used: a damaged code cache is not', async () => {
    const { cache } = await builtProgram();
    const code = cache.subarray(0, 100_000);
    const bundle = Buffer.from('a bundle');
    const file = Buffer.concat([code, digestOf(code, bundle)]);
    expect(checkedCode(file, bundle)).toEqual(code);
    expect(() => checkedCode(file, Buffer.from('A bundle'))).toThrow('it is damaged, or was not made for this build');
    const damage = damages('code cache');
    let used = 0;
    for (let round = 0; round < 1_000; round += 1) {
      try {
        checkedCode(damage(file), bundle);
        used += 1;
      } catch {}
    }
    expect(used).toBe(0);
  });

  it('that was made with other flags of V8 is not used', async () => {
    await builtProgram();
    const script = `
      const source = require('node:fs').readFileSync('dist/main.bundle.js');
      require('./dist/code-cache.js').readCode('dist/${CACHE_NAME}', source);`;
    await expect(node('--stack-size=900', '-e', script)).rejects.toThrow('these flags of V8');
  });

  it('that was made for another program of the same length is not used', async () => {
    const { bundle, cache } = await builtProgram();
    using build = new CopiedBuild(cache);
    const other = bundle.toString('latin1').replace('"rules loaded"', '"RULES LOADED"');
    await writeFile(join(build.dist, 'main.bundle.js'), other, 'latin1');
    expect(other).toHaveLength(bundle.length);
    await using shop = await Shop.start({ dist: build.dist });
    expect(await shop.weir.line(/rules loaded/i)).toContain('msg="RULES LOADED"');
  });

  it.each<readonly [what: string, make: (path: string, cache: Buffer) => unknown, reason: string]>([
    ['has another byte 28', (path, cache) => writeFile(path, cache.fill(~cache[28]!, 28, 29)), 'it is damaged, or'],
    ['is cut off', (path, cache) => writeFile(path, cache.subarray(0, 1_000)), 'it is damaged, or'],
    ['is empty', (path) => writeFile(path, ''), 'it is damaged, or'],
    ['is a folder', (path) => mkdir(path), 'it is not a regular file'],
    ['is a named pipe', (path) => execFileSync('mkfifo', [path]), 'it is not a regular file'],
    ['is endless', (path) => symlink('/dev/zero', path), 'it is not a regular file'],
    ['has 4 GB', async (path) => [await writeFile(path, ''), await truncate(path, 4e9)], 'it is too large'],
    ['cannot be read', (path) => symlink(path, path), 'ELOOP'],
  ])('that %s is not used', async (_, make, reason) => {
    const { cache } = await builtProgram();
    using folder = new TemporaryFolder();
    const path = folder.at('cache');
    await make(path, cache);
    const script = `
      const bundle = require('node:fs').readFileSync('dist/main.bundle.js');
      require('./dist/code-cache.js').readCode(process.argv[1], bundle);`;
    await expect(node('-e', script, path)).rejects.toThrow(`Error: ${reason}`);
  });

  it('that is not used is mentioned in one line', async () => {
    const { cache } = await builtProgram();
    using build = new CopiedBuild(cache.subarray(0, 1_000));
    await using shop = await Shop.start({ dist: build.dist });
    const lines = shop.weir.output.split('\n').filter((line) => line.includes('code cache'));
    const reason = `${CACHE_NAME}: it is damaged, or`;
    const start = `level=info msg="the code cache is ignored; the start takes longer" reason="${reason}`;
    expect(lines).toEqual([expect.stringContaining(start)]);
    await shop.hit();
  });

  it('that is not there, as in the package, is not mentioned', async () => {
    using build = new CopiedBuild();
    await using shop = await Shop.start({ dist: build.dist });
    expect(shop.weir.output).not.toContain('code cache');
    expect(await node(join(build.dist, 'main.js'), '--version')).toContain(VERSION);
  });
});
