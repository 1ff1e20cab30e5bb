import { findPlannedFeatures } from '../../src/settings/checks/planned-features';
import { group, setting } from '../../src/settings/table/setting';
import { boolean } from '../../src/settings/values/choices';

const table = [
  group({
    title: 'Kitchen',
    settings: [
      setting({ field: 'kettle', name: 'KETTLE', type: boolean, default: false, help: '' }),
      setting({ field: 'oven', name: 'OVEN', type: boolean, default: false, help: '', plannedFeature: 'gas' }),
      setting({ field: 'tub', name: 'TUB', type: boolean, default: false, help: '', plannedFeature: 'hot water' }),
    ],
  }),
  group({
    title: 'Bath',
    settings: [
      setting({
        field: 'shower',
        name: 'SHOWER',
        alias: 'DOUCHE',
        type: boolean,
        default: false,
        help: '',
        plannedFeature: 'hot water',
      }),
    ],
  }),
];

describe('a setting of a planned feature', () => {
  test('causes no warning while it is not set', () => {
    expect(findPlannedFeatures(table, new Map([['kettle', 'KETTLE']]))).toEqual([]);
  });

  test('causes one warning for all such settings, grouped by feature, with the variables that are set', () => {
    const variables = new Map(Object.entries({ tub: 'TUB', oven: 'OVEN', shower: 'DOUCHE', kettle: 'KETTLE' }));
    expect(findPlannedFeatures(table, variables)).toEqual([
      'These settings have no effect yet, because their features are planned for a later release: OVEN (gas); TUB, DOUCHE (hot water).',
    ]);
  });
});
