// Reads from package-lock.json which packages an installation of weir contains.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './workspace.mjs';

/** Development packages that are a part of what the build makes. */
const BUNDLED = new Set(['preact']);

/**
 * The packages that are installed with --omit=dev, on whichever platform, and those that are bundled; each name and
 * version once, by name.
 *
 * npm marks with `dev` what only development needs. (`npm sbom --omit dev` is no source: it leaves out what development
 * needs, too.)
 *
 * @param lockFile the path of a lock file; default: that of the project
 * @returns name, version, licence (an SPDX expression, undefined if the lock has none), integrity (undefined if the
 *   lock has none), isOptional, and `requires`: `name@version` of the packages it depends on
 */
export function productionPackages(lockFile = join(ROOT, 'package-lock.json')) {
  const { packages } = JSON.parse(readFileSync(lockFile, 'utf8'));
  const rows = Object.entries(packages)
    // Without the project and its workspaces, which have no entry of their own or are links.
    .filter(
      ([path, { dev, link }]) =>
        path.startsWith('node_modules/') && (dev !== true || BUNDLED.has(nameAt(path))) && link !== true,
    )
    .map(([path, entry]) => ({
      name: nameAt(path),
      version: entry.version,
      licence: entry.license,
      integrity: entry.integrity,
      isOptional: entry.optional === true,
      requires: requirements(path, packages),
    }));
  const unique = new Map(rows.map((row) => [`${row.name}@${row.version}`, row]));
  return [...unique.values()].toSorted(
    (one, other) => compare(one.name, other.name) || compare(one.version, other.version),
  );
}

/**
 * `name@version` of what the package at `path` of the lock depends on; '' is the project itself, without its
 * development packages.
 */
export function requirements(path, packages) {
  const { dependencies, optionalDependencies, peerDependencies } = packages[path];
  const names = new Set(Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }));
  if (path === '') for (const name of BUNDLED) names.add(name);
  const found = [...names].map((name) => locate(name, path, packages)).filter((at) => at !== undefined);
  return found.map((at) => `${nameAt(at)}@${packages[at].version}`).toSorted(compare);
}

/**
 * The path in the lock at which Node finds a package that the one at `from` loads; undefined if it is not installed.
 */
function locate(name, from, packages) {
  const path = from === '' ? `node_modules/${name}` : `${from}/node_modules/${name}`;
  if (packages[path] !== undefined) return packages[path].dev === true ? undefined : path;
  if (from === '') return undefined;
  const end = from.lastIndexOf('/node_modules/');
  return locate(name, end === -1 ? '' : from.slice(0, end), packages);
}

function nameAt(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function compare(one, other) {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
