import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** Runs promtool; rejects with its output when it fails. */
export function promtool(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('promtool', args, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stdout}${stderr}`)),
    );
  });
}

/** Checks rules, or runs tests of rules, with promtool. */
export async function promtoolRules(command: 'check' | 'test', content: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-promtool-'));
  try {
    const file = join(folder, 'rules.yaml');
    await writeFile(file, stringify(content));
    return await promtool(command, 'rules', file);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
