import { is, isNot } from './condition';
import { group, setting } from './setting';
import { duration } from '../values/duration';
import { wholeNumber } from '../values/numbers';

const COUNTED = isNot('OFFENDERS_SIZE', '0');

export const explanationSettings = group({
  title: 'Explanations of decisions',
  settings: [
    setting({
      field: 'offendersSize',
      name: 'OFFENDERS_SIZE',
      type: wholeNumber({ min: 0, max: 100_000 }),
      default: 1000,
      help: 'Number of descriptors over their limits that are counted at a time, to find those that are limited most; 0: none.',
    }),
    setting({
      field: 'offendersWindow',
      name: 'OFFENDERS_WINDOW',
      type: duration('above 0'),
      default: 600_000,
      requires: [COUNTED],
      help: 'Period of these counts: they cover the current period and the previous one.',
    }),
    setting({
      field: 'offendersMetrics',
      name: 'OFFENDERS_METRICS',
      type: wholeNumber({ min: 0, max: 1000 }),
      default: 0,
      requires: [COUNTED, is('USE_PULLMETRICS', 'true')],
      help: 'Number of the descriptors limited most that are exported to Prometheus, with their texts as labels.',
    }),
  ],
});
