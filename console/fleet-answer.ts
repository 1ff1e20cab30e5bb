import type { Fleet, FleetInstance, History, InstanceReport, LiveRates } from '../src/operators/live-answers';
import { type Answer, Poll, call } from './api';
import { recordedOf } from './history';
import { TONES, type Tone } from './icons';
import { live } from './live-events';
import { replaceParameters, route } from './route';
import { useStore } from './store';

/** Milliseconds between two looks. */
const LOOK_INTERVAL = 5_000;

const fleet = new Poll<Fleet>(
  () => call<Fleet>('fleet'),
  () => LOOK_INTERVAL,
);

/** All instances; undefined while there is one only, or no answer yet. */
export function useFleet(): Fleet | undefined {
  const known = useStore(live).event?.health.instances.known ?? 1;
  const { value } = fleet.use(known > 1);
  return known > 1 ? value : undefined;
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
  const all = useFleet();
  const { event } = useStore(live);
  const chosen = useStore(route).parameters.get('scope');
  const instance = all?.instances.find((each) => scopeOf(each) === chosen);
  if (all === undefined || instance?.address === null) {
    const [name] = nameOf(instance ?? { name: null, address: null });
    return { fleet: all, instance, text: `Only ${name}`, rates: event?.rates, latency: event?.latency };
  }
  if (instance !== undefined) {
    const { rates, latency } = instance;
    return { fleet: all, instance, text: `Only ${nameOf(instance).join(', ')}`, rates, latency };
  }
  const answer = all.instances.filter(({ problem, health }) => problem === null && health !== null).length;
  const text = `${answer === all.instances.length ? 'All' : `${answer} of`} ${all.instances.length} instances, summed`;
  return { fleet: all, instance, text, rates: all.rates, latency: all.latency };
}

export function chooseScope(scope: string): void {
  replaceParameters({ scope });
}

/** The last hour of what is shown: of all instances as one, or of the chosen one. */
export function useHistory(): Answer<History> {
  return recordedOf(useScope().instance?.id ?? '').use();
}

/** Seconds of the ranges that charts can show. */
export const RANGES = { '5m': ['5 min', 300], '15m': ['15 min', 900], '': ['1 h', 3_600] } as const;

export function useRange(): number {
  const chosen = useStore(route).parameters.get('range') ?? '';
  return (RANGES[chosen as keyof typeof RANGES] ?? RANGES[''])[1];
}

/** Samples for which there is room at least, also where fewer are known. */
const LEAST = 30;

/** The begin and end of what is known of a range. */
export function spanOf(
  { times, interval }: Pick<History, 'times' | 'interval'>,
  range: number,
): readonly [from: number, until: number] {
  const until = times.at(-1) ?? Date.now() / 1000;
  return [until - Math.min(range, Math.max(LEAST * interval, until - (times[0] ?? until))), until];
}
