// What the scripts share: where things are, and what has changed since they were made.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** Written when a build is complete; an interrupted build leaves none. */
export const BUILD_STAMP = join(ROOT, 'dist', '.built');

export const say = (text) => process.stderr.write(`weir: ${text}\n`);

/** Runs a command in the root, its output shown; when it fails, so does this process, after one sentence. */
export function run(command, args, env = process.env) {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', env });
  if (status === 0) return;
  say(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
  process.exit(status || 1);
}

const modified = (path) => statSync(path).mtimeMs;

/** The newest modification below `path`, in milliseconds; folders count too, so that a removed file is noticed. */
function newest(path, ignored) {
  if (ignored.has(path)) return 0;
  const own = modified(path);
  if (!statSync(path).isDirectory()) return own;
  return readdirSync(path).reduce((latest, name) => Math.max(latest, newest(join(path, name), ignored)), own);
}

/** Whether `target` is missing or older than anything in `sources` (paths relative to the root). */
export function isStale(target, sources, ignore = []) {
  if (!existsSync(target)) return true;
  const ignored = new Set(ignore.map((path) => join(ROOT, path)));
  return sources.some((source) => newest(join(ROOT, source), ignored) > modified(target));
}
