// Carries changed copies over into the renderings without Helm: the chart includes them as they are.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { ROOT } from '../workspace.mjs';
import { CHART, digestOf, variants } from './variants.mjs';

/** How deep the copies are indented in the renderings. */
const DEPTHS = [2, 4];

function indented(text, depth) {
  return text.trimEnd().replaceAll(/^(?=.)/gm, ' '.repeat(depth));
}

function replaceCopy(rendering, before, after) {
  return DEPTHS.reduce(
    (text, depth) => text.replace(`\n${indented(before, depth)}\n`, () => `\n${indented(after, depth)}\n`),
    rendering,
  );
}

function versionIn(chart) {
  return /^appVersion: (.*)$/m.exec(chart)[1];
}

function replaceVersion(rendering, before, after) {
  return rendering
    .replaceAll(`app.kubernetes.io/version: "${before}"`, `app.kubernetes.io/version: "${after}"`)
    .replaceAll(`image: "weir:${before}"`, `image: "weir:${after}"`);
}

/**
 * The renderings of which only copies of other files and the version of weir are out of date.
 *
 * @param parts the copies and Chart.yaml, as they should be
 */
export function carriedOver(parts) {
  const changed = parts
    .map((part) => ({ ...part, before: readFileSync(join(ROOT, part.path), 'utf8') }))
    .filter(({ before, text }) => before !== text);
  const replaced = new Map(changed.map(({ path, text }) => [path, text]));
  return variants().flatMap((variant) => {
    const current = readFileSync(join(ROOT, variant.rendering), 'utf8');
    const digest = digestOf(variant);
    if (changed.length === 0 || !current.includes(`# Sources: ${digest}\n`)) return [];
    const text = changed.reduce(
      (rendering, { path, before, text: after }) =>
        path === relative(ROOT, join(CHART, 'Chart.yaml'))
          ? replaceVersion(rendering, versionIn(before), versionIn(after))
          : replaceCopy(rendering, before, after),
      current,
    );
    return [{ path: variant.rendering, text: text.replace(digest, digestOf(variant, replaced)) }];
  });
}
