import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom } from 'rxjs';
import { loadInThread } from '../../../src/sources/rule-thread/load-in-thread';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-thread-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

describe('loadInThread', () => {
  it('rejects rules whose check exceeds the memory of the thread, and this process continues', async () => {
    const module = join(dir, 'greedy.cjs');
    // Small objects: a large one that exceeds the limit at once ends the whole process on Node 24.
    writeFileSync(module, "const all = []; for (;;) all.push('x'.repeat(10) + all.length);");
    const loaded$ = loadInThread(module, { resourceLimits: { maxOldGenerationSizeMb: 20 } });
    expect(await firstValueFrom(loaded$)).toEqual({
      ruleset: undefined,
      errors: ['cannot check the rules: they need too much memory: write fewer rules, or smaller files'],
      isUnchecked: true,
    });
  });

  it('reports whether the thread failed, so that the rules may be valid, or their check threw an error', async () => {
    const module = join(dir, 'failing.cjs');
    writeFileSync(module, 'process.exit(7)');
    expect(await firstValueFrom(loadInThread(module, {}))).toEqual({
      ruleset: undefined,
      errors: ['cannot check the rules: the worker thread exited with code 7'],
      isUnchecked: true,
    });
    writeFileSync(module, 'throw new Error("a defect")');
    expect(await firstValueFrom(loadInThread(module, {}))).toEqual({
      ruleset: undefined,
      errors: ['cannot check the rules: a defect'],
    });
  });

  it('gives the thread a bounded heap', async () => {
    const module = join(dir, 'limits.cjs');
    writeFileSync(
      module,
      "throw new Error(`heap of ${require('node:worker_threads').resourceLimits.maxOldGenerationSizeMb} MiB`);",
    );
    const loaded = await firstValueFrom(loadInThread(module, {}));
    const heap = Number(/heap of (\d+) MiB/.exec(JSON.stringify(loaded))?.[1]);
    expect(heap).toBeGreaterThan(0);
    expect(heap).toBeLessThanOrEqual(2048);
  });
});
