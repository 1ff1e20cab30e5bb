import { join } from 'node:path';
import { lastValueFrom, toArray } from 'rxjs';
import { linesOf } from '../../../support/data/rules';
import { type LoadOptions, loadRules } from '../../../../src/sources/rule-files/loading/load-rules';
import type { LoadedRules } from '../../../../src/sources/rule-thread/load-in-thread';
import { RuleTree } from '../../../support/data/rule-tree';

const IN_MAIN_THREAD = Number.MAX_SAFE_INTEGER;
const IN_WORKER = 0;

function load(texts: Readonly<Record<string, string>>, options: Partial<LoadOptions>): Promise<LoadedRules[]> {
  const files = Object.entries(texts).map(([path, text]) => ({ path, content: new TextEncoder().encode(text) }));
  const workerFile = join(__dirname, '../rules-worker-entry.cjs');
  return lastValueFrom(loadRules(files, { mergeDomainConfigs: false, workerFile, ...options }).pipe(toArray()));
}

function repeat(times: number, text: (number: number) => string) {
  return Array.from({ length: times }, (_, i) => text(i)).join('');
}

/** Nested three levels deep and larger than a chunk, so that chunks end at every depth. */
const DEEP = `domain: deep
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
`;

const VALID = { 'a.yaml': 'domain: empty\ndescriptors: []\n', 'b.yaml': DEEP };

describe.each([
  { where: 'in the main thread', smallSet: IN_MAIN_THREAD },
  { where: 'in a worker thread', smallSet: IN_WORKER },
])('loadRules, $where,', ({ smallSet }) => {
  it('emits one ruleset with the warnings, once', async () => {
    const results = await load(VALID, { smallSet });
    expect(results).toEqual([{ ruleset: expect.anything(), warnings: [expect.stringMatching(/^a\.yaml:2:\d+: /)] }]);
  });

  it('names files that are too large, and can load others afterwards', async () => {
    const none = new Uint8Array();
    const files = ['x.yaml', 'y.yaml'].map((path) => ({ path, content: none, tooLarge: 40_000_000 }));
    const workerFile = join(__dirname, '../rules-worker-entry.cjs');
    const options = { mergeDomainConfigs: false, workerFile, smallSet };
    const valid = { path: 'b.yaml', content: new TextEncoder().encode(DEEP) };
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const content = valid.content.slice();
      const loaded = await lastValueFrom(loadRules([{ ...valid, content }, ...files], options));
      expect(loaded).toMatchObject({
        ruleset: undefined,
        errors: [
          expect.stringMatching(/^x\.yaml:.* has 40000000 bytes/),
          expect.stringMatching(/^y\.yaml:.* has 40000000 bytes/),
        ],
      });
    }
  });

  it('emits the errors as lines', async () => {
    const results = await load({ ...VALID, 'd.yaml': 'domain: d\nrules: []\n', 'e.yaml': '' }, { smallSet });
    expect(results).toEqual([
      {
        ruleset: undefined,
        errors: [
          expect.stringMatching(/^d\.yaml:2:1: .*unknown key 'rules'/),
          expect.stringMatching(/^e\.yaml:1:1: config file cannot have empty domain\./),
        ],
      },
    ]);
  });

  it('accepts a domain in several files when they are merged', async () => {
    const texts = {
      'a.yaml': 'domain: d\ndescriptors: [{ key: a }]\n',
      'b.yaml': 'domain: d\ndescriptors: [{ key: b }]\n',
    };
    expect(await load(texts, { smallSet })).toEqual([
      { ruleset: undefined, errors: [expect.stringMatching(/duplicate domain/)] },
    ]);
    const [merged] = await load(texts, { smallSet, mergeDomainConfigs: true });
    expect(merged?.ruleset?.domain('d')?.find('b', '')).toBeDefined();
  });

  it('emits a ruleset without domains when there are no files', async () => {
    const [none] = await load({}, { smallSet });
    expect(none?.ruleset?.domains.size).toBe(0);
  });
});

describe('loadRules in a worker thread', () => {
  it('emits the same rules as the main thread, including nested rules, domains without rules, and metadata', async () => {
    const [direct] = await load(VALID, { smallSet: IN_MAIN_THREAD });
    const [transferred] = await load(VALID, { smallSet: IN_WORKER });
    if (direct?.ruleset === undefined || transferred?.ruleset === undefined) throw new Error('both should be valid');
    expect(linesOf(transferred.ruleset)).toHaveLength(301);
    expect(linesOf(transferred.ruleset)).toEqual(linesOf(direct.ruleset));
    expect(Array.from(transferred.ruleset.domains.keys())).toEqual(['empty', 'deep']);
    expect(transferred.ruleset.domain('deep')).toEqual(direct.ruleset.domain('deep'));
  });

  it.each([
    { fate: 'throws', code: 'throw new Error("out of luck")', reason: 'out of luck' },
    { fate: 'exits', code: 'process.exit(3)', reason: 'the worker thread exited with code 3', isUnchecked: true },
    { fate: 'cannot be started', code: undefined, reason: 'Cannot find module' },
  ])('rejects the rules when the thread $fate', async ({ code, reason, isUnchecked }) => {
    using tree = new RuleTree();
    if (code !== undefined) tree.write('worker.cjs', code);
    expect(await load(VALID, { smallSet: IN_WORKER, workerFile: tree.at('worker.cjs') })).toEqual([
      {
        ruleset: undefined,
        errors: [expect.stringContaining(`cannot check the rules: ${reason}`)],
        ...(isUnchecked && { isUnchecked }),
      },
    ]);
  });
});
