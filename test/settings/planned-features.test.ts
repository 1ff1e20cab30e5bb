import { findPlannedFeatures } from '../../src/settings/checks/planned-features';
import { derived, group, setting } from '../../src/settings/table/setting';
import { boolean, choice } from '../../src/settings/values/choices';

const table = [
  group({
    title: 'Kitchen',
    settings: [
      setting({ field: 'kettle', name: 'KETTLE', type: boolean, default: false, help: '' }),
      setting({ field: 'oven', name: 'OVEN', type: boolean, default: false, help: '', plannedFeature: 'gas' }),
      setting({
        field: 'heat',
        name: 'HEAT',
        type: choice({ wood: [], gas: ['propane'] }),
        default: derived('gas if OVEN is set, else wood'),
        help: '',
        plannedValues: { gas: 'gas' },
      }),
    ],
  }),
  group({
    title: 'Bath',
    plannedFeature: 'hot water',
    settings: [
      setting({ field: 'tub', name: 'TUB', type: boolean, default: false, help: '' }),
      setting({ field: 'shower', name: 'SHOWER', alias: 'DOUCHE', type: boolean, default: false, help: '' }),
    ],
  }),
];

function find(variables: Record<string, string>, values: Record<string, unknown> = {}) {
  return findPlannedFeatures(table, { variables: new Map(Object.entries(variables)), value: (field) => values[field] });
}

describe('a setting of a planned feature', () => {
  test('causes no warning while it is not set', () => {
    expect(find({ kettle: 'KETTLE' }, { heat: 'wood' })).toEqual({ problems: [], warnings: [] });
  });

  test('causes one warning for all such settings, grouped by feature, with the variables that are set', () => {
    expect(find({ tub: 'TUB', oven: 'OVEN', shower: 'DOUCHE', kettle: 'KETTLE' }).warnings).toEqual([
      'These settings have no effect yet, because their features are planned for a later release: OVEN (gas); TUB, DOUCHE (hot water).',
    ]);
  });
});

describe('a value that needs a planned feature', () => {
  test('is rejected', () => {
    expect(find({ heat: 'HEAT' }, { heat: 'gas' })).toEqual({
      problems: ['HEAT=gas is not supported yet: gas is planned for a later release; set HEAT to another value.'],
      warnings: [],
    });
  });

  test('is rejected as a default too, because using another value would be wrong', () => {
    expect(find({}, { heat: 'gas' }).problems).toEqual([
      'HEAT is not set and defaults to gas (gas if OVEN is set, else wood), which is not supported yet: gas is planned for a later release; set HEAT to another value.',
    ]);
  });

  test('does not affect the other values of the setting', () => {
    expect(find({ heat: 'HEAT' }, { heat: 'wood' })).toEqual({ problems: [], warnings: [] });
  });
});
