import { type Dirent, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { readControllerSource, subclassText } from './source';

/** The controllers of the next version, not yet written. */
export interface Bump {
  readonly from: number;
  readonly to: number;
  readonly files: readonly NewFile[];
}

export interface NewFile {
  readonly path: string;
  readonly text: string;
}

/** Controllers that cannot be bumped, or not written; the message has one line for each problem. */
export class BumpError extends Error {
  override readonly name = 'BumpError';
}

const VERSION_FOLDER = /^v([1-9]\d*)$/;
const CONTROLLER = /^(.+)-controller\.(?:[cm]?js|[cm]?ts)$/;
const DECLARATION = /\.d\.[cm]?ts$/;

/**
 * Plans a controller of the next version for each controller of the highest version: a class with an empty body that extends the
 * previous one, in the language and module format of that file.
 *
 * @param folder the folder with the folders `v1`, `v2`, …
 * @throws {BumpError} when there are no controllers, or when one cannot be extended; then none should be
 */
export function planBump(folder: string): Bump {
  const { version: from, controllers } = highestVersion(folder);
  const problems: string[] = [];
  const sources = controllers.flatMap((path) => {
    const file = join(folder, `v${from}`, path);
    try {
      return [{ path, source: readControllerSource(readFileSync(file, 'utf8'), className(path)) }];
    } catch (error) {
      problems.push(`${file}: ${(error as Error).message}`);
      return [];
    }
  });
  if (problems.length > 0) throw new BumpError(problems.join('\n'));
  const siblingImports = sources.flatMap(({ source }) => source.relativeImports);
  const files = sources.map(({ path, source }) => {
    const extended = `${'../'.repeat(path.split('/').length)}v${from}/${path}`;
    return {
      path: join(folder, `v${from + 1}`, path),
      text: subclassText({ source, version: from, path: extended, siblingImports }),
    };
  });
  return { from, to: from + 1, files };
}

/**
 * Writes a new file; an existing one is never overwritten.
 *
 * @returns false when the file exists
 * @throws {BumpError} when the file cannot be written
 */
export function writeNewFile({ path, text }: NewFile): boolean {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (error) {
    throw cannotWrite(path, error);
  }
  try {
    writeFileSync(path, text, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw cannotWrite(path, error);
  }
}

function cannotWrite(path: string, cause: unknown): BumpError {
  return new BumpError(`cannot write ${path}: ${(cause as Error).message}`, { cause });
}

/** The highest version that has controllers, compared as numbers, and their paths in its folder with `/`. */
function highestVersion(folder: string): { readonly version: number; readonly controllers: readonly string[] } {
  const versions = entriesOf(folder)
    .flatMap((entry) => (entry.isDirectory() ? (VERSION_FOLDER.exec(entry.name)?.[1] ?? []) : []))
    .map(Number)
    .toSorted((one, other) => other - one);
  for (const version of versions) {
    const controllers = controllersIn(join(folder, `v${version}`));
    if (controllers.length > 0) return { version, controllers };
  }
  throw new BumpError(`there are no controllers in ${join(folder, 'v<n>')}: no file is named like foo-controller.js`);
}

function entriesOf(folder: string, options: { readonly recursive?: boolean } = {}): readonly Dirent[] {
  try {
    return readdirSync(folder, { ...options, withFileTypes: true });
  } catch (cause) {
    throw new BumpError(`cannot read the folder ${folder}: ${(cause as Error).message}`, { cause });
  }
}

function controllersIn(folder: string): readonly string[] {
  return entriesOf(folder, { recursive: true })
    .filter((entry) => entry.isFile() && CONTROLLER.test(entry.name) && !DECLARATION.test(entry.name))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .toSorted();
}

/** The name of a class without one: `admin/rate-limits-controller.js` becomes `RateLimitsController`. */
function className(path: string): string {
  const [, name = ''] = CONTROLLER.exec(basename(path)) ?? [];
  const words = name.split(/[^A-Za-z0-9]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('').replace(/^\d/, '_$&')}Controller`;
}
