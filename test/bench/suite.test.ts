import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Ajv from 'ajv';
import type { Phase } from '../../bench/suite/measure/phase';
import type { Results } from '../../bench/suite/results';
import schema from '../../bench/suite/results.schema.json';
import { RULES } from '../../bench/suite/scenarios/rules';
import { BENCH_TIMEOUT, balanceOf, bench, read } from './run-bench';
import { elementsOf } from './well-formed';

describe('npm run bench', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  describe('with a few scenarios and short measurements', () => {
    let output: string;
    let results: Results;
    let phases: readonly Phase[];
    const only = ['memory/json', 'redis/over-limit', 'redis/over-limit-cached', 'redis/tls', 'redis-1ms/hot-key'];

    beforeAll(async () => {
      const names = [...only, 'memory-per-key/redis', 'event/store-restart', 'event/rolling-restart'].join(',');
      const short = ['--quick', '--seconds', '0.1', '--keys', '50000'];
      output = await bench(...short, '--only', names, '--out', folder);
      results = read(folder, 'bench.json') as Results;
      phases = results.decisions.flatMap(({ saturation, paced }) => [saturation, ...paced.map(({ phase }) => phase)]);
    }, BENCH_TIMEOUT);

    it('writes results that match the schema, with every measurement that was asked for', () => {
      const validate = new Ajv().compile(schema);
      expect([validate(results), validate.errors]).toEqual([true, null]);
      expect(results.decisions.map(({ store, load }) => `${store}/${load}`).toSorted()).toEqual(only.toSorted());
      expect(results.memory.map(({ store }) => store)).toEqual(['redis']);
      expect(results.events.map(({ event }) => event)).toEqual(['store-restart', 'rolling-restart']);
    });

    it('accounts for every call', () => {
      expect(phases.length).toBe(2 * results.decisions.length);
      for (const { calls } of [...phases, ...results.events]) expect(balanceOf(calls)).toBe(0);
      for (const { calls } of phases) {
        expect(calls.expected).toBeGreaterThan(0);
        expect([calls.failed, calls.unexpected]).toEqual([0, 0]);
      }
    });

    it('measures the CPU time of the service, and that of the store where there is one', () => {
      for (const { store, saturation } of results.decisions) {
        expect(saturation.cpu.service).toBeGreaterThan(0);
        if (store === 'memory') expect(saturation.cpu.store).toBe(0);
      }
    });

    it('counts fewer commands to Redis than decisions, and in the over-limit scenarios those that scripts call', () => {
      const { saturation } = results.decisions.find(({ store, load }) => store === 'redis' && load === 'over-limit')!;

      expect(saturation.commands!.sent).toBeGreaterThan(0);
      expect(saturation.commands!.sent).toBeLessThan(1);
      expect(saturation.commands!.executed).toBeGreaterThan(saturation.commands!.sent);
    });

    it('adds at least the delay of the proxy to every call that Redis counts', () => {
      const { paced } = results.decisions.find(({ store }) => store === 'redis-1ms')!;

      expect(paced[0]!.phase.latency.p50).toBeGreaterThan(1);
    });

    it('has quantiles of latency in order', () => {
      for (const { latency } of [...phases, ...results.events]) {
        const { p50, p99, p999, max } = latency;
        expect([p50, p99, p999, max]).toEqual([p50, p99, p999, max].toSorted((one, other) => one - other));
      }
    });

    it('lets calls fail while the store is away, and restarts two instances in turn', () => {
      const [storeRestart, rollingRestart] = results.events;

      expect(storeRestart!.calls.failed).toBeGreaterThan(0);
      expect(storeRestart!.timeline.reduce((sum, { failed }) => sum + failed, 0)).toBe(storeRestart!.calls.failed);
      expect(rollingRestart!.moments.map(({ what }) => what)).toEqual(
        [1, 2].flatMap((instance) => [
          `SIGTERM to instance ${instance}`,
          `instance ${instance} has exited`,
          `instance ${instance} serves again`,
        ]),
      );
    });

    it('measures what a key takes in Redis', () => {
      const [memory] = results.memory;

      expect(memory!.keys).toBe(50_000);
      // More than the characters of a key and its value.
      expect(memory!.data).toBeGreaterThan(40);
    });

    it('prints the tables, and writes them with well-formed charts', () => {
      const report = readFileSync(join(folder, 'report.md'), 'utf8');
      const charts = Array.from(report.matchAll(/!\[[^\]]*\]\((\S+)\)/g), ([, file]) => file!);

      expect(output).toContain(report.slice(0, report.indexOf('![')).trim());
      expect(charts).toEqual(['cost.svg', 'latency.svg', 'events.svg']);
      for (const chart of charts) {
        const elements = elementsOf(readFileSync(join(folder, chart), 'utf8'));
        expect(elements.slice(0, 3)).toEqual(['svg', 'title', 'style']);
        expect(elements.filter((name) => name === 'rect' || name === 'circle').length).toBeGreaterThan(5);
      }
    });
  });

  it('lists the names of all measurements', async () => {
    const names = (await bench('--list')).trim().split('\n');

    expect(names).toEqual(expect.arrayContaining(['redis-cluster/3-descriptors', 'memcached/over-limit-cached']));
    expect(names).toEqual(expect.arrayContaining(['memory-per-key/memory', 'event/reload']));
  });

  it('prints the rule file of its scenarios', async () => {
    expect(await bench('--rules')).toBe(`${RULES}\n`);
  });

  it.each([
    ['--only', 'nothing-like-this', /nothing is called nothing-like-this/],
    ['--seconds', 'x', /--seconds: x is not a positive number/],
    ['--set', 'WORKERS', /--set: WORKERS is not NAME=VALUE/],
    ['--against', 'localhost', /--against: localhost is not host:port/],
  ])('rejects %s %s', async (option, value, message) => {
    await expect(bench(option, value)).rejects.toThrow(message);
  });
});
