// npm run bench:scale: see README.md.
import { parseArgs } from 'node:util';
import { type Mode, type Report, type Setting, simulateScale } from './fleet';
import { bytesPerLease } from './lease-memory';

const { values } = parseArgs({
  options: {
    /** Milliseconds to the store and back: of all regions, or of each, as in 2/30/80. */
    trip: { type: 'string', multiple: true, default: ['2', '30', '80', '2/30/80'] },
    mode: { type: 'string', multiple: true, default: ['exact', 'cached', 'leases'] },
    regions: { type: 'string', default: '3' },
    /** In each region. */
    instances: { type: 'string', default: '50' },
    keys: { type: 'string', default: '1000000' },
    exponent: { type: 'string', default: '1.1' },
    /** Calls per second of all instances. */
    calls: { type: 'string', default: '5000000' },
    seconds: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '2' },
    /** Of each key. */
    limit: { type: 'string', default: '100000' },
    /** Seconds. */
    window: { type: 'string', default: '10' },
    nodes: { type: 'string', default: '16' },
    'per-region': { type: 'boolean', default: false },
    /** The share of the calls on a key that are made in one region. */
    home: { type: 'string' },
  },
});

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}

function thousands(number: number): string {
  return Math.round(number).toLocaleString('en-US');
}

function settingOf(trip: string, mode: string): Setting {
  const regions = Number(values.regions);
  const trips = trip.split('/').map(Number);
  return {
    mode: mode as Mode,
    trips: Array.from({ length: regions }, (_, region) => trips[region % trips.length]!),
    instances: Number(values.instances),
    keys: Number(values.keys),
    exponent: Number(values.exponent),
    callsPerSecond: Number(values.calls),
    seconds: Number(values.seconds),
    warmUp: Number(values['warm-up']),
    requestsPerUnit: Number(values.limit),
    windowSeconds: Number(values.window),
    nodes: Number(values.nodes),
    isPerRegion: values['per-region'],
    home: values.home === undefined ? 1 / regions : Number(values.home),
  };
}

const COLUMNS: Readonly<Record<string, (report: Report) => string>> = {
  'commands per call': ({ commands }) => commands.toPrecision(2),
  'windows per call': ({ windows }) => windows.toPrecision(2),
  'commands/s of a node': ({ perNode }) => thousands(perNode),
  'of the hottest, in its busiest second': ({ hottestNode }) => thousands(hottestNode),
  'decided at once': ({ atOnce }) => percent(atOnce),
  'of the limits of busy keys passed': ({ passed }) => percent(passed),
  'calls denied early': ({ deniedEarly }) => percent(deniedEarly),
  'denied while others held hits': ({ deniedWhileHeld }) => percent(deniedWhileHeld),
  'leases of an instance: average, most': ({ leases, mostLeases }) => `${thousands(leases)}, ${thousands(mostLeases)}`,
  seconds: ({ seconds }) => thousands(seconds),
};

console.log(`A lease takes ${thousands(bytesPerLease())} bytes of an instance, with its key of 28 characters.\n`);
console.log(`| ms to the store | counted | ${Object.keys(COLUMNS).join(' | ')} |`);
console.log(
  `| --- | --- | ${Object.keys(COLUMNS)
    .map(() => '---:')
    .join(' | ')} |`,
);
for (const trip of values.trip) {
  for (const mode of values.mode) {
    const report = simulateScale(settingOf(trip, mode));
    console.log(`| ${[trip, mode, ...Object.values(COLUMNS).map((column) => column(report))].join(' | ')} |`);
  }
}
