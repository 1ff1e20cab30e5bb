import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './manifests';

const exec = promisify(execFile);

describe('the Helm chart', () => {
  it('has no part that is older than what it follows from (else: node scripts/check-chart.mjs --write --without-helm)', async () => {
    const script = join(ROOT, 'scripts/check-chart.mjs');
    const { stderr } = await exec(process.execPath, [script, '--without-helm']).catch(
      (error: { stderr: string }) => error,
    );
    expect(stderr).toMatch(/^weir: chart: \d+ variants, 0 problems\n$/);
  });
});
