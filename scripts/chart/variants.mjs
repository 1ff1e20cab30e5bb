// The variants of the chart whose renderings are committed, and what they are rendered from.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { ROOT } from '../workspace.mjs';

export const CHART = join(ROOT, 'deploy/helm/weir');

/** Folders of values, and where their renderings are. Those for users are plain manifests, without the test of Helm. */
const FOLDERS = [
  { values: 'deploy/helm/weir/ci', renderings: 'deploy/kubernetes', isPublished: true },
  { values: 'test/deploy/variants', renderings: 'test/deploy/variants/rendered', isPublished: false },
];

/** All variants: the path of the values, the path of the rendering, both relative to the root. */
export function variants() {
  return FOLDERS.flatMap(({ values, renderings, isPublished }) =>
    readdirSync(join(ROOT, values))
      .filter((name) => name.endsWith('-values.yaml'))
      .map((name) => ({
        name: basename(name, '-values.yaml'),
        values: join(values, name),
        rendering: join(renderings, name.replace('-values.yaml', '.yaml')),
        isPublished,
      })),
  );
}

function filesBelow(folder) {
  // The names of a folder come in no order that all file systems have.
  return readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesBelow(path) : [path]));
}

/**
 * A digest of everything that a rendering depends on. It is in the rendering, so that a chart that was changed without rendering it
 * again is noticed where there is no Helm.
 *
 * @param replaced texts by path, used instead of those of the files
 */
export function digestOf({ values }, replaced = new Map()) {
  const hash = createHash('sha256');
  const own = ['Chart.yaml', 'values.yaml'].map((name) => join(CHART, name));
  const files = [
    ...own,
    ...filesBelow(join(CHART, 'templates')),
    ...filesBelow(join(CHART, 'files')),
    join(ROOT, values),
  ];
  for (const file of files) {
    const path = relative(ROOT, file);
    hash.update(`${path}\n${replaced.get(path) ?? readFileSync(file, 'utf8')}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}
