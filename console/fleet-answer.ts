import type { Fleet, FleetInstance, History, InstanceReport, LiveRates } from '../src/operators/live-answers';
import { type Answer, useAnswer } from './api';
import { useRecorded } from './history';
import { TONES, type Tone } from './icons';
import { live } from './live-events';
import { route } from './route';
import { useStore } from './store';

/** Milliseconds between two looks of pages that follow something. */
export const LOOK_INTERVAL = 5_000;

/** All instances; undefined while there is one only, or no answer yet. */
export function useFleet(): Fleet | undefined {
  const known = useStore(live).event?.health.instances.known ?? 1;
  return useAnswer<Fleet>(known > 1 ? 'fleet' : undefined, { every: LOOK_INTERVAL }).value;
}

/** How an instance is named everywhere: by its host, which others may have too, and where it is asked. */
export function nameOf({ name, address }: Pick<FleetInstance, 'name' | 'address'>): readonly [string, string] {
  return [name ?? address ?? 'this instance', address === null ? 'this one' : name === null ? '' : address];
}

/** How an instance is: its worst. */
export function toneOf({ problem, health, differs }: FleetInstance): Tone {
  if (problem !== null) return 'red';
  if (health === null) return 'none';
  return health.state === 'green' && differs.length > 0 ? 'amber' : TONES[health.state];
}

/** The parameter of an instance: its address, or `this`. */
export function scopeOf({ address }: Pick<FleetInstance, 'address'>): string {
  return address ?? 'this';
}

/** Which instances the numbers of a page are of. */
export interface Scope {
  readonly fleet: Fleet | undefined;
  /** The only instance that is shown; undefined: all of the fleet, or the only one that is known. */
  readonly instance: FleetInstance | undefined;
  /** In words: `All 5 instances, summed`. */
  readonly text: string;
  /** What is counted at present; null before the first sample, undefined: not known. */
  readonly rates: LiveRates | null | undefined;
  readonly latency: InstanceReport['latency'] | undefined;
}

export function useScope(): Scope {
  const fleet = useFleet();
  const { event } = useStore(live);
  const chosen = useStore(route).parameters.get('scope');
  const instance = fleet?.instances.find((each) => scopeOf(each) === chosen);
  const isThis = fleet === undefined || instance?.address === null;
  const { rates, latency } = (isThis ? event : (instance ?? fleet)) ?? {};
  if (fleet === undefined || instance !== undefined) {
    const name = nameOf(instance ?? { name: null, address: null });
    return { fleet, instance, text: `Only ${isThis ? name[0] : name.join(', ')}`, rates, latency };
  }
  const answer = fleet.instances.filter(({ problem, health }) => problem === null && health !== null).length;
  const all = fleet.instances.length;
  return {
    fleet,
    instance,
    text: `${answer === all ? 'All' : `${answer} of`} ${all} instances, summed`,
    rates,
    latency,
  };
}

/** The last hour of what is shown: of all instances as one, or of the chosen one. */
export function useHistory(): Answer<History> {
  return useRecorded(useScope().instance?.id ?? '');
}

/** Seconds of the ranges that charts can show. */
export const RANGES = { '5m': ['5 min', 300], '15m': ['15 min', 900], '': ['1 h', 3_600] } as const;

export function useRange(): number {
  const chosen = useStore(route).parameters.get('range') ?? '';
  return (RANGES[chosen as keyof typeof RANGES] ?? RANGES[''])[1];
}

/** Samples for which there is room at least, also where fewer are known. */
const LEAST = 30;

/** The begin and end of what is known of a range, and its first sample. */
export function spanOf({ times, interval }: Pick<History, 'times' | 'interval'>, range: number) {
  const until = times.at(-1) ?? Date.now() / 1000;
  const from = until - Math.min(range, Math.max(LEAST * interval, until - (times[0] ?? until)));
  return { from, until, first: times.findIndex((time) => time >= from) };
}
