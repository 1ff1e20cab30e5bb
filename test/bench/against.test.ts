import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Comparison } from '../../bench/suite/against';
import { RULE_FILE } from '../../bench/suite/scenarios/rules';
import { RuleFolder } from '../support/data/rule-folder';
import { TypeScriptProcess } from '../support/processes/typescript-process';
import { WeirProcess } from '../support/processes/weir-process';
import { BENCH_TIMEOUT, balanceOf, bench, read } from './run-bench';

describe('npm run bench -- --against', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  const load = ['--quick', '--seconds', '0.1', '--only', 'memory/hot-key,memory/over-limit', '--out', folder];

  it(
    'plays the same load on a second weir and prints both side by side',
    async () => {
      await using rules = await RuleFolder.with({ [RULE_FILE]: await bench('--rules') });
      await using other = await WeirProcess.start({ env: { ...rules.env, DISABLE_STATS: 'true' } });
      const address = other.grpcAddress;
      const output = await bench('--against', address, '--against-pid', String(other.pid), ...load);
      const comparisons = read(folder, 'against.json') as Comparison[];

      expect(output).toContain(`${address}: per second`);
      expect(output).not.toContain('differ');
      expect(comparisons.map((each) => each.load)).toEqual(['hot-key', 'over-limit']);
      for (const { weir, other: measured } of comparisons) {
        for (const { saturation, paced } of [weir, measured]) {
          for (const { calls } of [saturation, ...paced.map(({ phase }) => phase)]) {
            expect(balanceOf(calls)).toBe(0);
            expect([calls.failed, calls.unexpected]).toEqual([0, 0]);
          }
          // The system counts it in steps of 10 ms, which a slow pace may not reach.
          expect(saturation.cpu.service).toBeGreaterThan(0);
        }
      }
    },
    BENCH_TIMEOUT,
  );

  it(
    'plays it on a grpc-js server, and reports that a constant answer is wrong over the limit',
    async () => {
      await using server = new TypeScriptProcess(join(__dirname, 'grpc-js-server.ts'), []);
      const address = `127.0.0.1:${await server.line()}`;
      const output = await bench('--against', address, ...load);
      const [hot, overLimit] = read(folder, 'against.json') as Comparison[];

      for (const { weir, other } of [hot!, overLimit!]) {
        for (const { saturation, paced } of [weir, other]) {
          for (const { calls } of [saturation, ...paced.map(({ phase }) => phase)]) {
            expect(balanceOf(calls)).toBe(0);
            expect(calls.failed).toBe(0);
          }
        }
      }
      expect(hot!.other.saturation.calls.unexpected).toBe(0);
      expect(overLimit!.other.saturation.calls).toMatchObject({ expected: 0 });
      expect(overLimit!.weir.saturation.calls.unexpected).toBe(0);
      expect(output).toContain('answered differently (over limit)');
    },
    BENCH_TIMEOUT,
  );

  it('fails when nothing listens there', async () => {
    await expect(bench('--against', '127.0.0.1:1', ...load)).rejects.toThrow('no connection to 127.0.0.1:1');
  });
});
