import { is, isNot } from './condition';
import { group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { duration } from '../values/duration';
import { ratio, wholeNumber } from '../values/numbers';
import { text } from '../values/text';

const LOGGED = is('DECISION_LOG', 'denied', 'all');
const COUNTED = isNot('OFFENDERS_SIZE', '0');

export const explanationSettings = group({
  title: 'Explanations of decisions',
  settings: [
    setting({
      field: 'decisionLog',
      name: 'DECISION_LOG',
      type: choice({ off: [], denied: [], all: [] }),
      default: 'off',
      help: 'Decisions that are written as JSON lines: those over a limit, also in shadow mode, or all and errors.',
    }),
    setting({
      field: 'decisionLogSample',
      name: 'DECISION_LOG_SAMPLE',
      type: ratio({ min: 0, max: 1 }),
      default: 1,
      requires: [LOGGED],
      help: 'Share of these decisions that is written.',
    }),
    setting({
      field: 'decisionLogOutput',
      name: 'DECISION_LOG_OUTPUT',
      type: text('stdout, stderr, or a file path'),
      default: 'stdout',
      requires: [LOGGED],
      help: 'Where they are written: standard output, standard error between the lines of the log, or a file to append to.',
    }),
    setting({
      field: 'unmatchedWarnings',
      name: 'UNMATCHED_WARNINGS',
      type: boolean,
      default: true,
      help: 'Warns about calls to which no rule applies, with the nearest rule; at most five lines per minute.',
    }),
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
