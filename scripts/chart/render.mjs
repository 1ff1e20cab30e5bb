// Renders and lints the chart with Helm.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../workspace.mjs';
import { CHART, digestOf } from './variants.mjs';

/** The version of Kubernetes that the renderings are for. */
export const KUBERNETES = '1.34.0';

/** The program: that of the variable HELM, or the one on the PATH; undefined if there is none. */
export function findHelm() {
  const program = process.env.HELM || 'helm';
  return spawnSync(program, ['version'], { stdio: 'ignore' }).status === 0 ? program : undefined;
}

/** Runs Helm. Returns its output and what it complains about. */
export function helm(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 });
  return { isOk: status === 0, stdout, complaint: `${stderr}${status === 0 ? '' : stdout}`.trim() };
}

function valueFlags(values) {
  return values === undefined ? [] : ['--values', join(ROOT, values)];
}

/** What `helm lint --strict` complains about, or undefined. */
export function lint(program, values) {
  const { isOk, complaint } = helm(program, [
    'lint',
    '--strict',
    '--quiet',
    '--kube-version',
    KUBERNETES,
    CHART,
    ...valueFlags(values),
  ]);
  return isOk ? undefined : complaint;
}

/** Renders the chart for a release named weir. */
export function template(program, values, flags = []) {
  const release = ['template', 'weir', CHART, '--namespace', 'weir', '--kube-version', KUBERNETES];
  return helm(program, [...release, ...valueFlags(values), ...flags]);
}

/** The text of the file of a variant, or what Helm complains about. */
export function rendering(program, variant) {
  const { isOk, stdout, complaint } = template(program, variant.values, variant.isPublished ? ['--skip-tests'] : []);
  if (!isOk) return { complaint };
  const head = [
    `# Rendered from deploy/helm/weir with ${variant.values}; do not edit:`,
    '# node scripts/check-chart.mjs --write renders it again.',
    `# Sources: ${digestOf(variant)}`,
  ];
  // Whoever applies these files does so without Helm.
  const manifests = stdout
    .replaceAll(/^ +(?:helm\.sh\/chart|app\.kubernetes\.io\/managed-by): .*\n/gm, '')
    .replaceAll(/^ +$/gm, '');
  return { text: `${head.join('\n')}\n${manifests}` };
}
