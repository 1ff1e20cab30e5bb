import { readSettings } from '../../src/settings/read-settings';
import { readVariable } from '../../src/settings/variables/read-variable';
import { DerivedDefault, type Setting } from '../../src/settings/table/setting';
import { settingsTable } from '../../src/settings/table/settings-table';
import { problemsOf } from './problems-of';
import { twoTexts } from './two-texts';

const rows: readonly Setting[] = settingsTable.flatMap((group): readonly Setting[] => group.settings);
const withAlias = rows.flatMap((row) => (row.alias === undefined ? [] : [{ ...row, alias: row.alias }]));

describe('the settings table', () => {
  test('contains every variable and every field once', () => {
    const names = rows.flatMap(({ name, alias }) => [name, ...(alias === undefined ? [] : [alias])]);
    expect(names).toEqual([...new Set(names)]);
    expect(rows.map(({ field }) => field)).toEqual([...new Set(rows.map(({ field }) => field))]);
  });

  test.each(rows.map((row) => [row.name, row] as const))('names the field of %s in camel case', (name, row) => {
    const [first = '', ...others] = name.toLowerCase().split('_');
    expect(row.field).toBe(first + others.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(''));
  });

  test('describes the settings of both key-value stores in the same way', () => {
    function shapeOf({ type, secret, default: value }: Setting) {
      return {
        allowed: type.allowed,
        secret,
        default: value instanceof DerivedDefault ? value.text.replace('PERSECOND_', '') : value,
      };
    }
    const pairs = rows.flatMap((second) => {
      const first = rows.find(({ name }) => name === second.name.replace('KVSTORE_PERSECOND_', 'KVSTORE_'));
      return first === undefined || first === second ? [] : [[first, second] as const];
    });
    expect(pairs).toHaveLength(13);
    expect(pairs.map(([, second]) => shapeOf(second))).toEqual(pairs.map(([first]) => shapeOf(first)));
  });

  test('lists the settings of both key-value stores under the same names, in the same order', () => {
    function suffixesOf(title: string, prefix: string) {
      const { settings = [] } = settingsTable.find((candidate) => candidate.title.startsWith(title)) ?? {};
      return settings.flatMap(({ name }) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
    }
    const common = [
      ...['TYPE', 'URL', 'SOCKET_TYPE', 'AUTH', 'SENTINEL_AUTH', 'POOL_SIZE', 'TIMEOUT'],
      ...['POOL_ON_EMPTY_BEHAVIOR', 'POOL_ON_EMPTY_WAIT_DURATION'],
    ];
    const pipeline = ['PIPELINE_LIMIT', 'CLUSTER_PIPELINE_PARALLELISM', 'TLS'];
    expect(suffixesOf('Key-value store', 'KVSTORE_').slice(0, 12)).toEqual([...common, ...pipeline]);
    expect(suffixesOf('Second key-value store', 'KVSTORE_PERSECOND_')).toEqual([
      ...common,
      'PIPELINE_WINDOW',
      ...pipeline,
    ]);
  });

  test('marks every variable that contains credentials as secret', () => {
    const secrets = rows.filter(({ name }) => /AUTH|PASSWORD|TOKEN$|HEADERS$/.test(name));
    expect(secrets.map(({ secret }) => secret)).toEqual(secrets.map(() => 'value'));
    const addresses = rows.filter(({ name }) => /^KVSTORE_(PERSECOND_)?URL$/.test(name));
    expect(addresses.map(({ secret }) => secret)).toEqual(['credentials', 'credentials']);
  });
});

const withDefault = rows.flatMap((row) => {
  const written =
    row.default === undefined || row.default instanceof DerivedDefault ? '' : row.type.format(row.default);
  return written === '' ? [] : [[row.name, written, row] as const];
});

test.each(withDefault)('%s accepts its default, %s, as a value', (_, written, row) => {
  expect(row.type.parse(written)).toEqual({ value: row.default });
});

describe.each(rows.map((row) => [row.name, row] as const))('%s', (name, row) => {
  test('counts as not set when it is empty or blank', () => {
    const empty = readSettings({ [name]: '', ...(row.alias !== undefined && { [row.alias]: '  ' }) });
    expect(empty.settings).toEqual(readSettings({}).settings);
    expect([...empty.given, ...empty.warnings]).toEqual([]);
  });

  test('is read without surrounding blanks', () => {
    const [text] = twoTexts(row);
    expect(readVariable({ [name]: ` ${text}\t` }, row)).toEqual(readVariable({ [name]: text }, row));
  });
});

describe.each(withAlias.map((row) => [row.name, row.alias, row] as const))('%s', (name, alias, row) => {
  const [one, other] = twoTexts(row);

  test(`is read from ${alias} too`, () => {
    expect(readVariable({ [alias]: one }, row)).toEqual({ ...readVariable({ [name]: one }, row), givenAs: alias });
  });

  test(`may be set together with ${alias} to the same value`, () => {
    expect(readVariable({ [name]: one, [alias]: one }, row)).toEqual(readVariable({ [name]: one }, row));
    expect(readVariable({ [name]: '', [alias]: one }, row).givenAs).toBe(alias);
  });

  test(`is rejected when ${alias} has another value`, () => {
    const problems = problemsOf({ [name]: one, [alias]: other });
    expect(problems).toContainEqual(
      expect.stringMatching(/are two names of one setting and have different values; remove one of them\.$/),
    );
  });
});
