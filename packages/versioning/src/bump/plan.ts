import { readFileSync, readdirSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { readControllerSource, subclassText } from './source';

/** The controllers of the next version, not yet written. */
export interface Bump {
  /** The one that is extended. */
  readonly version: number;
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

const VERSION_FOLDER = /^v([1-9]\d*)$/;
const CONTROLLER = /^(.+)-controller\.(?:[cm]?js|[cm]?ts)$/;
const DECLARATION = /\.d\.[cm]?ts$/;

/**
 * Plans a controller of the next version for each controller of the highest version: a class with an empty body that
 * extends the previous one, in the language and module format of that file.
 *
 * @param folder the folder with the folders `v1`, `v2`, …
 * @throws Error when there are no controllers, or when some cannot be extended, with one line for each
 */
export function planBump(folder: string): Bump {
  const { version, controllers } = highestVersion(folder);
  const problems: string[] = [];
  const sources = controllers.flatMap((path) => {
    const file = join(folder, `v${version}`, path);
    try {
      return [{ path, source: readControllerSource(readFileSync(file, 'utf8'), className(path)) }];
    } catch (error) {
      problems.push(`${file}: ${(error as Error).message}`);
      return [];
    }
  });
  if (problems.length > 0) throw new Error(problems.join('\n'));
  const allImports = sources.flatMap(({ source }) => source.relativeImports);
  const files = sources.map(({ path, source }) => {
    const extended = `${'../'.repeat(path.split('/').length)}v${version}/${path}`;
    return {
      path: join(folder, `v${version + 1}`, path),
      text: subclassText(source, { version, extended, allImports }),
    };
  });
  return { version, files };
}

/** The highest version that has controllers, compared as numbers, and their paths in its folder with `/`. */
function highestVersion(folder: string): { readonly version: number; readonly controllers: readonly string[] } {
  const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const versions = folders.flatMap(({ name }) => VERSION_FOLDER.exec(name)?.[1] ?? []).map(Number);
  for (const version of versions.toSorted((one, other) => other - one)) {
    const controllers = controllersIn(join(folder, `v${version}`));
    if (controllers.length > 0) return { version, controllers };
  }
  throw new Error(`there are no controllers in ${join(folder, 'v<n>')}: no file is named like foo-controller.js`);
}

function controllersIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
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
