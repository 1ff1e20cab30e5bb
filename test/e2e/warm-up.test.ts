import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { VERSION } from '../../src/cli/version';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const ROOT = join(__dirname, '../..');
const CACHE = `main.bundle.${process.version}-${process.arch}.cache`;

/** What Node prints. */
async function node(...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, args, { cwd: ROOT })).stdout;
}

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

describe('the program', () => {
  // The build has made it for the version of Node that it ran with.
  beforeAll(async () => {
    if (!existsSync(join(ROOT, 'dist', CACHE))) await node('scripts/code-cache.cjs');
  });

  it('is loaded with the code that was compiled for it at the build', async () => {
    const script = `
      const { readFileSync } = require('node:fs');
      const cachedData = readFileSync('dist/${CACHE}');
      const { cachedDataRejected } = new (require('node:vm').Script)(readFileSync('dist/main.bundle.js', 'latin1'), { cachedData });
      console.log(cachedDataRejected);`;
    expect(await node('-e', script)).toBe('false\n');
  });

  it.each([
    ['is not there', undefined],
    ['is damaged', (cache: Buffer) => Buffer.from(cache.map((byte, index) => (index % 64 === 5 ? byte ^ 255 : byte)))],
    ['is cut off', (cache: Buffer) => cache.subarray(0, 1000)],
  ])('runs also when this code %s', async (_, change) => {
    using folder = new TemporaryFolder();
    await mkdir(folder.at('dist'));
    for (const name of ['main.js', 'main.bundle.js'])
      await copyFile(join(ROOT, 'dist', name), folder.at(`dist/${name}`));
    for (const name of ['node_modules', 'package.json', 'schema']) await symlink(join(ROOT, name), folder.at(name));
    if (change !== undefined)
      await writeFile(folder.at(`dist/${CACHE}`), change(await readFile(join(ROOT, 'dist', CACHE))));
    expect(await node(folder.at('dist/main.js'), '--version')).toContain(VERSION);
  });
});
