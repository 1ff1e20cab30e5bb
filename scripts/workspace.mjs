// Helpers of the scripts: paths, running commands, and finding what has changed since the last build.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** Written at the end of a build, so it does not exist after an interrupted one. */
export const BUILD_STAMP = join(ROOT, 'dist', '.built');

/** The pages with what to do, which the console shows. */
export const CONSOLE_PAGES = ['operations-reference', 'operations', 'operators-api', 'runbook'].map(
  (name) => `docs/${name}.md`,
);

export function printStatus(text) {
  process.stderr.write(`weir: ${text}\n`);
}

/** Carries out a step and prints how long it took. */
export function timed(step, action) {
  const start = performance.now();
  action();
  printStatus(`${step} took ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

/** Runs a command in the root and shows its output. If the command fails, prints a message and ends the process. */
export function run(command, args, env = process.env) {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', env });
  if (status === 0) return;
  printStatus(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
  process.exit(status || 1);
}

function modified(path) {
  return statSync(path).mtimeMs;
}

/**
 * The time of the newest modification below `path`, in milliseconds; includes folders, so that removed files are
 * noticed.
 */
function newest(path, ignored) {
  if (ignored.has(path)) return 0;
  const own = modified(path);
  if (!statSync(path).isDirectory()) return own;
  return readdirSync(path).reduce((latest, name) => Math.max(latest, newest(join(path, name), ignored)), own);
}

/** Whether `target` does not exist or is older than anything in `sources` (paths relative to the root). */
export function isStale(target, sources, ignore = []) {
  if (!existsSync(target)) return true;
  const ignored = new Set(ignore.map((path) => join(ROOT, path)));
  return sources.some((source) => newest(join(ROOT, source), ignored) > modified(target));
}
