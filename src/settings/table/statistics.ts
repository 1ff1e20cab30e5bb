import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { wholeNumber } from '../values/numbers';

export const statisticsSettings = group({
  title: 'Statistics',
  settings: [
    setting({
      field: 'statsMaxRuntimeKeys',
      name: 'STATS_MAX_RUNTIME_KEYS',
      type: wholeNumber({ min: 0 }),
      default: 10_000,
      help: 'Maximum number of statistics keys with values from requests; further ones are counted under their rule.',
    }),
    setting({
      field: 'disableStats',
      name: 'DISABLE_STATS',
      type: boolean,
      default: false,
      help: 'Sends no statistics, regardless of the outputs below.',
    }),
  ],
});
