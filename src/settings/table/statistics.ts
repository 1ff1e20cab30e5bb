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
      help: 'Statistics keys that may hold values of requests; further ones count under their rule.',
    }),
    setting({
      field: 'disableStats',
      name: 'DISABLE_STATS',
      type: boolean,
      default: false,
      help: 'Sends statistics nowhere, whatever the outputs below say.',
    }),
  ],
});
