import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCheck } from '../../src/cli/check/run-check';
import { renderings } from './manifests';

const withRules = renderings().filter(({ ruleFiles }) => ruleFiles !== undefined);

describe('the rule files in the ConfigMap', () => {
  it.each(withRules.map((rendering) => [rendering.name, rendering.ruleFiles!] as const))(
    'of the variant %s have no error and no warning',
    async (_name, files) => {
      const folder = mkdtempSync(join(tmpdir(), 'weir-chart-rules-'));
      try {
        for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
        const { exitCode, stdout, stderr } = await runCheck([folder, '--strict']);
        expect([exitCode, stderr, stdout]).toEqual([0, '', expect.stringContaining('0 warnings')]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  it('are there in the variants that take rules from files', () => {
    expect(withRules.map(({ name }) => name)).toEqual(['memory', 'redis', 'tls-workers']);
  });
});
