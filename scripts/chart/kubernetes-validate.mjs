// Validates manifests with kubernetes-validate, a Python program that contains the schemas of Kubernetes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

/** The oldest version that Chart.yaml permits, and a new one. */
const VERSIONS = ['1.27', '1.37'];
/** Fields that the oldest version does not know, each only rendered when its value is set. */
const NEWER_FIELDS = /^ *trafficDistribution:/m;

/** The program: that of the variable KUBERNETES_VALIDATE, or the one on the PATH; undefined if there is none. */
export function findValidator() {
  const program = process.env.KUBERNETES_VALIDATE || 'kubernetes-validate';
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0 ? program : undefined;
}

/** What is wrong with the objects of a file, except those of the Prometheus operator; undefined if nothing is. */
export function complaintsAbout(program, text) {
  const documents = parseAllDocuments(text).filter(
    (document) => document.get('apiVersion') !== 'monitoring.coreos.com/v1',
  );
  const folder = mkdtempSync(join(tmpdir(), 'weir-chart-'));
  try {
    const file = join(folder, 'manifests.yaml');
    writeFileSync(file, documents.map((document) => `---\n${document.toString({ directives: false })}`).join(''));
    const complaints = VERSIONS.filter((version) => version !== VERSIONS[0] || !NEWER_FIELDS.test(text)).flatMap(
      (version) => {
        const { status, stdout, stderr } = spawnSync(program, ['-k', version, '--strict', '--quiet', file], {
          encoding: 'utf8',
        });
        return status === 0 ? [] : [`Kubernetes ${version}: ${stdout}${stderr}`.trim()];
      },
    );
    return complaints.length === 0 ? undefined : complaints.join('\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
}
