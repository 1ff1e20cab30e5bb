import { readFileSync } from 'node:fs';
import { PerformanceObserver, constants } from 'node:perf_hooks';
import { lastValueFrom, toArray } from 'rxjs';
import { PendingChange, RuleReader } from '../../src/sources/rule-files/rule-reader';
import { type LoadOptions, checkMemory, loadRules } from '../../src/sources/loading/load-rules';
import { usableMemory } from '../../src/sources/usable-memory';
import { RuleTree, rules } from '../support/data/rule-tree';
import { linesOf } from '../support/data/rules';
import { until } from '../support/waiting/until';
import { LOAD_SETTINGS, MODES, QUICK, WORKER_FILE, WatchedRules, fileOptions } from './rule-files/watched-rules';

const IN_MAIN_THREAD = { smallSet: Number.MAX_SAFE_INTEGER };
const IN_WORKER = { smallSet: 0 };
const MIB = 1024 * 1024;

let tree: RuleTree;
beforeEach(() => {
  tree = new RuleTree();
});
afterEach(() => tree[Symbol.dispose]());

function load(
  texts: Readonly<Record<string, string>>,
  options: Partial<LoadOptions>,
  tooLarge: readonly string[] = [],
) {
  const files = Object.entries(texts).map(([path, text]) => ({ path, content: new TextEncoder().encode(text) }));
  const none = new Uint8Array();
  const all = [...files, ...tooLarge.map((path) => ({ path, content: none, tooLarge: 40_000_000 }))];
  const loaded$ = loadRules(all, { form: 'files', settings: LOAD_SETTINGS, workerFile: WORKER_FILE, ...options });
  return lastValueFrom(loaded$.pipe(toArray()));
}

function repeat(times: number, text: (number: number) => string) {
  return Array.from({ length: times }, (_, i) => text(i)).join('');
}

/** Nested three levels deep and larger than a chunk, so that chunks end at every depth. */
const DEEP = `domain: deep
default_rate_limit: { unit: day, requests_per_unit: 3, name: rest }
descriptors:
${repeat(
  30,
  (i) => `  - key: a
    value: v${i}
    descriptors:
${repeat(
  5,
  (j) => `      - key: b
        value: w${j}
        rate_limit: { unit: day, requests_per_unit: ${j}, name: n${i}-${j} }
        metadata: { deep: [1, { er: yes }], none: null }
        descriptors:
          - key: c
            detailed_metric: true
            rate_limit: { unit: second, requests_per_unit: 1, replaces: [{ name: n${i}-${j} }] }
`,
)}`,
)}  - key: last
    rate_limit: { unit: hour, requests_per_unit: 7 }
  - { key: last, value_in: [a, b], share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 8 } }
  - key: last
    value: c
    rate_limit: { unit: month, requests_per_unit: 8, calendar: { time_zone: Asia/Tokyo, starts_on: 15 } }
  - { key: last, value_cidr: "2001:db8::/32", rate_limit: { unit: hour, requests_per_unit: 9 } }
  - { key: last, value_regex: "^/[a-z]+$", rate_limit: { unit: hour, requests_per_unit: 10 } }
`;
const VALID = {
  'a.yaml': 'domain: empty\ndescriptors: []\n',
  'c.yaml': 'domain: closed\non_unmatched: deny\n',
  'b.yaml': DEEP,
};

describe('loadRules', () => {
  it('emits the same ruleset from a worker thread as from the main thread, once, with the warnings', async () => {
    const [direct, transferred] = await Promise.all([load(VALID, IN_MAIN_THREAD), load(VALID, IN_WORKER)]);
    const rulesets = [direct, transferred].map((results) => {
      expect(results).toEqual([{ ruleset: expect.anything(), warnings: [expect.stringMatching(/^a\.yaml:2:\d+: /)] }]);
      return results[0]!.ruleset!;
    });
    const [expected, ruleset] = rulesets as [(typeof rulesets)[0], (typeof rulesets)[0]];
    expect(linesOf(ruleset)).toHaveLength(307);
    expect(linesOf(ruleset)).toEqual(linesOf(expected));
    expect(Array.from(ruleset.domains.keys())).toEqual(['empty', 'closed', 'deep']);
    expect(ruleset.unmatched).toEqual(expected.unmatched);
    expect(ruleset.domains.get('deep')).toEqual(expected.domains.get('deep'));
    const values = ['b', '2001:db8::1', '/x', '/1'];
    const found = values.map((value) => ruleset.domains.get('deep')?.find('last', value)?.limit?.requestsPerUnit);
    expect(found).toEqual([8, 9, 10, 7]);
  });

  it.each([
    ['the main thread', IN_MAIN_THREAD],
    ['a worker thread', IN_WORKER],
  ])('emits the errors of %s as lines, those of files that are too large also the second time', async (_, options) => {
    const invalid = { ...VALID, 'd.yaml': 'domain: d\nrules: []\n', 'e.yaml': '' };
    for (const tooLarge of [[], ['x.yaml', 'y.yaml'], ['x.yaml', 'y.yaml']]) {
      const errors = [
        expect.stringMatching(/^d\.yaml:2:1: .*unknown key 'rules'/),
        expect.stringMatching(/^e\.yaml:1:1: config file cannot have empty domain\./),
        ...tooLarge.map((path) => expect.stringMatching(new RegExp(`^${path}:.* has 40000000 bytes`))),
      ];
      const report = expect.arrayContaining([
        expect.stringMatching(/^d\.yaml:2:1: error: .*\n.*\| rules: \[\]\n.*\| \^{5}\n/),
      ]);
      expect(await load(invalid, options, tooLarge)).toEqual([{ ruleset: undefined, errors, report }]);
    }
  });

  it('accepts a domain in several files when they are merged, also in a worker thread', async () => {
    const texts = { 'a.yaml': 'domain: d', 'b.yaml': 'domain: d\ndescriptors: [{ key: b }]' };
    const [merged] = await load(texts, { ...IN_WORKER, settings: { ...LOAD_SETTINGS, mergeDomainConfig: true } });
    expect(merged?.ruleset?.domains.get('d')?.find('b', '')).toBeDefined();
  });

  it.each<[backend: 'kvstore' | 'plaincache' | 'memory', instance: string, warnings: number]>([
    ['kvstore', 'Persecond', 1],
    ['kvstore', '', 1],
    ['plaincache', '', 0],
    ['memory', '', 0],
  ])('warns with %s of times that do not fit the policies of rules, those of the instance "%s" too', async (...row) => {
    const [backendType, instance, warnings] = row;
    const rule = '{ key: a, on_store_failure: deny, rate_limit: { unit: day, requests_per_unit: 1 } }';
    const texts = { 'a.yaml': `domain: d\ndescriptors: [${rule}]` };
    const settings = { ...LOAD_SETTINGS, backendType, kvstorePersecond: true, [`kvstore${instance}Timeout`]: 99 };
    const name = instance === '' ? 'KVSTORE_TIMEOUT' : 'KVSTORE_PERSECOND_TIMEOUT';
    for (const options of [IN_WORKER, IN_MAIN_THREAD]) {
      const [loaded] = await load(texts, { ...options, settings });
      const expected = expect.stringMatching(
        `^${name} is shorter than the 100 ms after which policies answer`,
      ) as string;
      expect(loaded).toMatchObject({ warnings: warnings === 0 ? [] : [expected] });
    }
  });
});

describe('the thread', () => {
  const HEAP = "require('node:worker_threads').resourceLimits.maxOldGenerationSizeMb";
  const OUT_OF_MEMORY =
    '7 bytes of rules need more than the 20 MiB that checking them may take: write fewer rules, write them without ' +
    'anchors and tags, which takes a tenth, or give this process more memory';

  it.each<[what: string, code: string | undefined, reason: string, isUnchecked: boolean, memory?: number]>([
    ['throws', 'throw new Error("out of luck")', 'out of luck', false],
    ['throws, in a bounded heap', `throw new Error(${HEAP} === 288)`, 'true', false, 288],
    ['exits', 'process.exit(3)', 'the worker thread exited with code 3', true],
    ['cannot be started', undefined, 'Cannot find module', false],
    // Small objects: a large one that exceeds the limit at once ends the whole process on Node 24.
    ['needs too much memory', "const a = []; for (;;) a.push('x'.repeat(9) + a.length)", OUT_OF_MEMORY, false, 20],
  ])('rejects the rules when it %s, and reports whether they may be valid', async (_, code, ...expected) => {
    const [reason, isUnchecked, memory] = expected;
    if (code !== undefined) tree.write('worker.cjs', code);
    expect(await load({ 'a.yaml': 'a: true' }, { ...IN_WORKER, workerFile: tree.at('worker.cjs'), memory })).toEqual([
      {
        ruleset: undefined,
        errors: [expect.stringContaining(`cannot check the rules: ${reason}`)],
        ...(isUnchecked && { isUnchecked }),
      },
    ]);
  });

  it.each([
    ['288 MiB', 'also for few rules', 40_000, Infinity, 288],
    ['9 times the size', 'where files are larger together', 64 * MIB, Infinity, 576],
    ['half of the memory', 'of a process that may not use more', 31_000_000, 500 * MIB, 250],
  ])('has a heap of %s, %s', (_, _1, bytes, usable, expected) => {
    expect(checkMemory(bytes, usable)).toBe(expected);
    expect(checkMemory(bytes)).toBeLessThanOrEqual(usableMemory() / 2 / MIB);
  });
});

describe('rules whose check failed in the thread', () => {
  const WORKER = `const fs = require('node:fs');
    fs.appendFileSync(__dirname + '/attempts', '.');
    if (fs.existsSync(__dirname + '/broken')) process.exit(7);
    require(${JSON.stringify(WORKER_FILE)});`;

  it.each(MODES)('are loaded again although unchanged, and the failure is reported once, $mode', async (mode) => {
    const files = { 'config/a.yaml': rules('a', 1), broken: '', attempts: '', 'worker.cjs': WORKER };
    for (const [path, text] of Object.entries(files)) tree.write(path, text);
    const { watchRoot } = mode;
    const timing = { ...QUICK, poll: 20 };
    const workerFile = tree.at('worker.cjs');
    using watched = new WatchedRules({ root: tree.base, watchRoot, timing, workerFile, ...IN_WORKER });
    expect(await watched.next()).toBe('rejected: cannot check the rules: the worker thread exited with code 7');
    await until('it is loaded three times', () => readFileSync(tree.at('attempts')).length >= 3);
    tree.remove('broken');
    expect(await watched.next()).toBe('a=1');
    expect(await watched.rest()).toEqual([]);
  });

  it('are loaded again after 1, 2, 4, … looks, and other rules at once', async () => {
    const files = { 'config/a.yaml': rules('a', 1), broken: '', attempts: '', 'worker.cjs': WORKER };
    for (const [path, text] of Object.entries(files)) tree.write(path, text);
    const options = fileOptions({ root: tree.base, workerFile: tree.at('worker.cjs'), ...IN_WORKER });
    const reader = new RuleReader(tree.at('config'), options, new PendingChange({ hold: 0, forced: Infinity }));
    async function attemptsIn(looks: number) {
      tree.write('attempts', '');
      for (let look = 0; look < looks; look += 1) {
        await lastValueFrom(
          reader.look(() => undefined),
          { defaultValue: undefined },
        );
      }
      return readFileSync(tree.at('attempts')).length;
    }
    expect(await attemptsIn(15)).toBe(4);
    expect(await attemptsIn(1)).toBe(1);
    expect(await attemptsIn(14)).toBe(0);
    tree.write('config/a.yaml', rules('a', 2));
    expect(await attemptsIn(2)).toBe(2);
  });
});

it.each([
  [{ backendType: 'plaincache' }, 'memcached has no scripts, without which hits cannot be taken up to a limit'],
  [
    { backendType: 'kvstore', stopCacheKeyIncrementWhenOverlimit: true },
    'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT needs the exact count of each call',
  ],
  [{ backendType: 'plaincache', leases: 'off' }, undefined],
  [{ backendType: 'kvstore' }, undefined],
  [{ backendType: 'memory' }, undefined],
] as const)('with %j a load of rules that cannot be leased has one warning of them all', async (changed, reason) => {
  const limit = '{ unit: day, requests_per_unit: 1, lease: true }';
  const text = `domain: shop\ndescriptors: [{ key: a, rate_limit: ${limit} }, { key: b, rate_limit: ${limit} }]\n`;
  const settings = { ...LOAD_SETTINGS, ...changed };
  const warning = `\`lease\` of 2 rules (shop.a, shop.b) has no effect: ${reason}`;
  for (const where of [IN_WORKER, IN_MAIN_THREAD]) {
    expect(await load({ 'a.yaml': text }, { ...where, settings })).toMatchObject([
      { warnings: reason === undefined ? [] : [warning] },
    ]);
  }
});

const WITHOUT_SCRIPTS =
  'memcached has no scripts, without which a decision is not atomic. Remove it, or use another store.';

it.each([
  ['in a thread', IN_WORKER],
  ['in this thread', IN_MAIN_THREAD],
])('rules with an algorithm are rejected %s where the store has none, also as a default', async (_, where) => {
  const settings = { ...LOAD_SETTINGS, backendType: 'plaincache' } as const;
  const limit = '{ unit: day, requests_per_unit: 1, algorithm: token_bucket }';
  const texts = [
    `domain: a\ndescriptors:\n- key: outer\n  descriptors: [{ key: k, rate_limit: ${limit} }]\n`,
    `domain: a\ndefault_rate_limit: ${limit}\ndescriptors: [{ key: k }]\n`,
  ];
  const places = ['a.yaml:4:24', 'a.yaml:2:1'];
  for (const [index, text] of texts.entries()) {
    const error = `${places[index]}: the algorithm token_bucket cannot be used: ${WITHOUT_SCRIPTS}`;
    expect(await load({ 'a.yaml': text }, { ...where, settings })).toEqual([{ ruleset: undefined, errors: [error] }]);
    expect(await load({ 'a.yaml': text }, where)).toMatchObject([{ warnings: [] }]);
  }
  const together =
    'domain: a\ndescriptors:\n- key: k\n  all_or_nothing: true\n  rate_limits: [{ unit: day, requests_per_unit: 1 }]\n';
  const atATime = 'domain: a\ndescriptors:\n- { key: k, rate_limit: { max_concurrent: 3 } }\n';
  const noPlaces = `a.yaml:3:10: max_concurrent cannot be used: ${WITHOUT_SCRIPTS}`;
  expect(await load({ 'a.yaml': atATime }, { ...where, settings })).toMatchObject([{ errors: [noPlaces] }]);
  const error = `a.yaml:3:8: all_or_nothing cannot be used: ${WITHOUT_SCRIPTS}`;
  expect(await load({ 'a.yaml': together }, { ...where, settings })).toMatchObject([{ errors: [error] }]);
});

it('young objects are collected after each chunk of rules, so that no collection has many of them', async () => {
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    const kinds = list
      .getEntries()
      .map((entry) => (entry as unknown as { readonly detail: { readonly kind: number } }).detail.kind);
    collections += kinds.filter((kind) => kind === constants.NODE_PERFORMANCE_GC_MINOR).length;
  });
  observer.observe({ entryTypes: ['gc'] });
  const text = `domain: a\ndescriptors:\n${repeat(4_000, (i) => `- key: k${i}\n`)}`;
  await load({ 'a.yaml': text }, IN_WORKER);
  // In this process alone; V8 collects much less often by itself, and reports each collection later.
  await until('they are reported', () => collections >= 20);
  observer.disconnect();
  expect(collections).toBeGreaterThanOrEqual(20);
});
