import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE_NAME } from '../../src/code-cache';
import { integersOf } from '../support/data/seeded-random';
import { TemporaryFolder } from '../support/data/temporary-folder';

const ROOT = join(__dirname, '../..');
const BUILT = join(ROOT, 'dist');

/** What Node prints. */
export async function node(...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, args, { cwd: ROOT })).stdout;
}

/** What the build has written: the bundle, and the code of it that V8 has compiled, with its digest. */
export async function builtProgram(): Promise<{ readonly bundle: Buffer; readonly cache: Buffer }> {
  // The build has made it for the version of Node that it ran with.
  if (!existsSync(join(BUILT, CACHE_NAME))) await node('scripts/code-cache.cjs');
  const [bundle, cache] = ['main.bundle.js', CACHE_NAME].map((name) => readFileSync(join(BUILT, name)));
  return { bundle: bundle!, cache: cache! };
}

/** A copy of the build, without the code cache. */
export class CopiedBuild extends TemporaryFolder {
  readonly dist = this.at('dist');
  readonly cache = this.at(`dist/${CACHE_NAME}`);

  constructor(cache?: Buffer) {
    super();
    mkdirSync(this.dist);
    for (const name of ['node_modules', 'package.json', 'schema']) symlinkSync(join(ROOT, name), this.at(name));
    for (const name of readdirSync(BUILT).filter((each) => each !== CACHE_NAME)) {
      // Node resolves links, so that the program of the build would find the files of the build.
      if (/^(?:main|main\.bundle|code-cache)\.js$/.test(name)) copyFileSync(join(BUILT, name), join(this.dist, name));
      else symlinkSync(join(BUILT, name), join(this.dist, name));
    }
    if (cache !== undefined) writeFileSync(this.cache, cache);
  }
}

/** Returns damaged copies of a file: bits that are flipped, bytes that are others, are lost, or are added. */
export function damages(seed: string): (file: Buffer) => Buffer {
  const below = integersOf(seed);
  return (file) => {
    const at = below(file.length);
    const kind = below(5);
    if (kind === 0) return file.subarray(0, at);
    if (kind === 1) return Buffer.concat([file.subarray(0, at), Buffer.alloc(1 + below(64)), file.subarray(at)]);
    if (kind === 2) return Buffer.concat([file.subarray(0, at), file.subarray(at + 1 + below(64))]);
    const damaged = Buffer.from(file);
    const flips = kind === 3 ? 1 : 200;
    for (let flip = 0; flip < flips; flip += 1) {
      const place = flip === 0 ? at : below(file.length);
      damaged[place] = damaged[place]! ^ (1 << below(8));
    }
    return damaged;
  };
}
