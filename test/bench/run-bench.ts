import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Calls } from '../../bench/suite/measure/phase';

const ROOT = join(__dirname, '../..');
const HOOK = join(ROOT, 'test/support/processes/typescript-hook.cjs');
const RUN = join(ROOT, 'bench/suite/run.ts');

/** Milliseconds: only ends runs that hang. */
export const BENCH_TIMEOUT = 400_000;

/** Runs `npm run bench` with these options; returns what it prints. */
export async function bench(...options: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--require', HOOK, RUN, ...options], { cwd: ROOT });
  return stdout;
}

export function read(folder: string, file: string): unknown {
  return JSON.parse(readFileSync(join(folder, file), 'utf8'));
}

/** 0 when every call is accounted for. */
export function balanceOf({ sent, inFlightBefore, expected, unexpected, failed, inFlight }: Calls): number {
  return sent + inFlightBefore - expected - unexpected - failed - inFlight;
}
