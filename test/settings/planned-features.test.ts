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
        default: derived('gas where OVEN is set, else wood'),
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

describe('a setting of a later release', () => {
  test('says nothing while it is not set', () => {
    expect(find({ kettle: 'KETTLE' }, { heat: 'wood' })).toEqual({ problems: [], warnings: [] });
  });

  test('that is set gets a warning, one for all of them, by feature and with the names used', () => {
    expect(find({ tub: 'TUB', oven: 'OVEN', shower: 'DOUCHE', kettle: 'KETTLE' }).warnings).toEqual([
      'These settings have no effect before a later release: OVEN (gas); TUB, DOUCHE (hot water).',
    ]);
  });
});

describe('a value of a later release', () => {
  test('is refused', () => {
    expect(find({ heat: 'HEAT' }, { heat: 'gas' })).toEqual({
      problems: ['HEAT=gas asks for gas, which a later release brings.'],
      warnings: [],
    });
  });

  test('is refused as a default too, since going on with another one would be wrong', () => {
    expect(find({}, { heat: 'gas' }).problems).toEqual([
      'HEAT is not set and therefore gas (gas where OVEN is set, else wood): a later release brings gas; set HEAT to go on without.',
    ]);
  });

  test('leaves the other values of the setting as they are', () => {
    expect(find({ heat: 'HEAT' }, { heat: 'wood' })).toEqual({ problems: [], warnings: [] });
  });
});
