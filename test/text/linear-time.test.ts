import { listFlag, parseFlags } from '../../src/cli/flags';
import { readRuleFiles } from '../../src/rules/files/read-rule-files';
import { readSettings } from '../../src/settings/read-settings';
import { secretsOfText } from '../../src/settings/secrets';
import { settingRows } from '../../src/settings/table/settings-table';
import { readMappingFile } from '../../src/sinks/statistics/mapping-file';
import { parseHostPort } from '../../src/text/host-port';

/** What a parser makes of a text; its error if it rejects the text. */
function outcomeOf(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    return error;
  }
}

function problemsOf(text: string): readonly string[] {
  const files = [{ path: 'a.yaml', content: Buffer.from(text) }];
  return readRuleFiles(files, { mergeDomainConfigs: false }).errors.map(({ code }) => code);
}

const MIB = 1024 * 1024;

// Each takes minutes, or years, where the time is not in proportion to the text.
describe('texts of others are read in linear time', () => {
  it.each([
    ['a host', () => parseHostPort(`[\0${':'.repeat(MIB)}]`), undefined],
    [
      'repeated flags',
      () => parseFlags(Array<string>(MIB / 4).fill('-d=1'), { d: listFlag('d', '') }).values.d.length,
      MIB / 4,
    ],
    ['a metric of a mapping', () => nameInMapping(`:$0${'0$0'.repeat(MIB / 4)}-`), expect.any(Error)],
    ['a metric of a mapping with digits', () => nameInMapping(`$${'0'.repeat(MIB)}-`), expect.any(Error)],
    ['a quoted value of a rule', () => problemsOf(`a: "${'\u2028'.repeat(MIB / 4)}"\n`), expect.any(Array)],
  ])('%s', (_, parse, outcome) => {
    expect(outcomeOf(parse)).toEqual(outcome);
  });

  function nameInMapping(name: string): unknown {
    return readMappingFile(`mappings: [{ match: a.*, name: ${JSON.stringify(name)} }]`);
  }

  it('each setting, of the length that Linux allows for a variable', () => {
    const longest = 128 * 1024;
    for (const { name } of settingRows) {
      for (const [begin = '', unit = ''] of [
        ['', '0'],
        ['0x', '1'],
        ['', ':'],
        ['', '://:'],
        ['', '(a*)*'],
        ['A', '_SERVICE_PORT_O'],
      ]) {
        const text = `${begin}${unit.repeat(longest / unit.length)}!`;
        expect(outcomeOf(() => readSettings({ [name]: text, [text]: text }))).not.toBeInstanceOf(RangeError);
      }
    }
  });

  it('each setting with a secret', () => {
    for (const setting of settingRows.filter(({ type }) => type.secret !== undefined)) {
      for (const unit of ['://:', '://', ',', '@', ' '])
        expect(secretsOfText(setting, unit.repeat(MIB / 4 / unit.length)).length).toBeGreaterThanOrEqual(0);
    }
  });
});
