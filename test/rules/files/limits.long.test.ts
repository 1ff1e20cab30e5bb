import { mkdirSync, rmdirSync, truncateSync } from 'node:fs';
import { readRules } from '../../../src/cli/check/read-rules';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { MAX_FILE_BYTES, MAX_FOLDERS } from '../../../src/rules/files/size-limits';
import { TemporaryFolder } from '../../support/data/temporary-folder';

function read(text: string) {
  return readRuleFiles([{ path: 'shop.yaml', content: new TextEncoder().encode(text) }], { mergeDomainConfigs: false });
}

// Each takes minutes in quadratic time.
describe('a large rule file is read in linear time', () => {
  it.each(['rate_limit: {unit: day, requests_per_unit: 1}', 'metadata: {a: 1}'])('with a repeated %s', (field) => {
    // More often than a function can have arguments.
    const { configs, errors } = read(`domain: d\ndescriptors:\n- key: k\n${`  ${field}\n`.repeat(400_000)}`);
    expect([configs[0]?.descriptors.length, errors]).toEqual([1, []]);
  });

  it.each([
    ['blocks', (value: number) => `- key: k\n  value: v${value}\n`],
    ['braces', (value: number) => `- { key: k, value: v${value} }\n`],
    ['JSON', (value: number) => `${value === 0 ? ' [' : ','}\n  { "key": "k", "value": "v${value}" }`, ']'],
  ])('with many rules in %s, each of which is read again by itself', (_, rule, end = '') => {
    const { configs, errors } = read(
      `domain: d\ndescriptors:\n${Array.from({ length: 100_000 }, (_1, at) => rule(at)).join('')}${end}`,
    );
    expect([configs[0]?.descriptors.length, configs[0]?.descriptors[99_999]?.value, errors]).toEqual([
      100_000,
      'v99999',
      [],
    ]);
  });

  it('with more problems than are kept, of which each takes some KiB', () => {
    const values = 'a,'.repeat(60_000);
    const blanks = Array.from({ length: 60_000 }, (_, index) => `' ${index}'`).join(',');
    const { errors, warnings } = read(
      `domain: d\ndescriptors: [{ key: k, value_in: [${values}] }, { key: l, value_in: [${blanks}] }]\n`,
    );
    expect([errors.length, warnings.length]).toEqual([50_000, 50_000]);
    expect([errors.at(-1)?.code, warnings.at(-1)?.code]).toEqual(['duplicate-descriptor', 'surrounding-blanks']);
  });

  it.each([']', '{}', '"a" '])('with a syntax error at each %j', (unit) => {
    expect(read(unit.repeat((1024 * 1024) / unit.length)).errors.length).toBeGreaterThan(0);
  });

  it.each([
    ['without an end', "- a: 'x\n"],
    ['with a line that is not indented', 'a: "x\nb"\n'],
  ])('with thousands of quoted values %s, which are all reported', (_, text) => {
    const { errors } = read(text.repeat(10_000));
    expect(errors).toHaveLength(10_000);
    expect(new Set(errors.map(({ message }) => message)).size).toBe(1);
  });

  it('with many errors on one line, of which each shows a part', () => {
    const { errors } = read(`{"domain": "d", "descriptors": [${'{"kex": "a"}, '.repeat(20_000)}{}]}`);
    expect(errors).toHaveLength(40_001);
    expect(Math.max(...errors.map(({ sourceLine }) => sourceLine.length))).toBeLessThanOrEqual(162);
  });
});

describe('a rule folder', () => {
  let folder: TemporaryFolder;
  beforeEach(() => void (folder = new TemporaryFolder()));
  afterEach(() => folder[Symbol.dispose]());

  async function excesses() {
    const { errors } = await readRules(folder.base, { mergeDomainConfigs: false, ignoreDotFiles: false });
    return errors.filter(({ code }) => code === 'folder-too-large').map(({ message }) => message);
  }

  it('with too many subfolders is rejected', async () => {
    for (let number = 0; number <= MAX_FOLDERS; number += 1) mkdirSync(folder.at(String(number)));
    expect(await excesses()).toEqual(['the folder has more than 1000 subfolders']);
    rmdirSync(folder.at('0'));
    expect(await excesses()).toEqual([]);
  });

  it('with rule files of too many bytes in total is rejected', async () => {
    for (const name of ['a.yaml', 'b.yaml', 'c.yaml']) truncateSync(folder.write(name, '#'), MAX_FILE_BYTES);
    expect(await excesses()).toEqual(['the folder has rule files of more than 67108864 bytes in total']);
  });
});
