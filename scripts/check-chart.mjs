// Checks the Helm chart: node scripts/check-chart.mjs [--write] [--without-helm]
//
// The parts that follow from other files, and the renderings of every variant; --write writes both. Helm is the program of the
// variable HELM or `helm` on the PATH. With --without-helm, renderings are compared by a digest of what they were made from, and
// --write only carries over changes of alerts, dashboard, example rules and version. With kubernetes-validate (KUBERNETES_VALIDATE or
// on the PATH), renderings are validated, too.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { carriedOver } from './chart/carry-over.mjs';
import { describingParts, includedParts } from './chart/generated-parts.mjs';
import { complaintsAbout, findValidator } from './chart/kubernetes-validate.mjs';
import { rejectedValues } from './chart/rejected-values.mjs';
import { findHelm, lint, rendering } from './chart/render.mjs';
import { digestOf, variants } from './chart/variants.mjs';
import { BUILD_STAMP, ROOT, isStale, printStatus } from './workspace.mjs';

const { values: flags } = parseArgs({
  options: { write: { type: 'boolean' }, 'without-helm': { type: 'boolean' } },
});
const problems = [];

function current(path) {
  return existsSync(join(ROOT, path)) ? readFileSync(join(ROOT, path), 'utf8') : undefined;
}

/** Writes a file that is not as it should be, or notes that. */
function expectFile(path, text) {
  if (current(path) === text) return;
  if (flags.write) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
    printStatus(`wrote ${path}`);
  } else {
    const flag = flags['without-helm'] ? ' --without-helm' : '';
    problems.push(`${path} is out of date: node scripts/check-chart.mjs --write${flag}`);
  }
}

function checkWithHelm(helm) {
  const validator = findValidator();
  if (validator === undefined)
    printStatus('kubernetes-validate is not installed: only the tests validate the renderings');
  for (const values of [undefined, ...variants().map((variant) => variant.values)]) {
    const complaint = lint(helm, values);
    if (complaint !== undefined) problems.push(`helm lint, ${values ?? 'defaults'}:\n${complaint}`);
  }
  for (const variant of variants()) {
    const { text, complaint } = rendering(helm, variant);
    if (text !== undefined) expectFile(variant.rendering, text);
    const invalid = validator && text && complaintsAbout(validator, text);
    if (complaint || invalid) problems.push(`${variant.values}: ${complaint || invalid}`);
  }
  problems.push(...rejectedValues(helm));
}

/** Finds renderings of an older chart, but not what is wrong with them. */
function checkDigests() {
  for (const variant of variants()) {
    const isCurrent = current(variant.rendering)?.includes(`\n# Sources: ${digestOf(variant)}\n`) === true;
    if (!isCurrent)
      problems.push(`${variant.rendering} is out of date: node scripts/check-chart.mjs --write, with Helm`);
  }
}

if (isStale(BUILD_STAMP, ['src/settings'])) {
  printStatus('src/settings has changed since the last build: run npm run build first');
  process.exit(1);
}
const included = includedParts();
// Without Helm, only these can be written. With it, all are rendered below.
for (const { path, text } of [...carriedOver(included), ...included, ...(await describingParts())])
  expectFile(path, text);
const helm = flags['without-helm'] ? undefined : findHelm();
if (helm !== undefined) checkWithHelm(helm);
else if (flags['without-helm']) checkDigests();
else problems.push('Helm is not on the PATH: install it, set HELM to the program, or check less with --without-helm');

for (const problem of problems) printStatus(problem);
printStatus(`chart: ${variants().length} variants, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
