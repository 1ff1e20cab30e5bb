import type { Offender } from '../src/limiter/offender';
import type { Change } from '../src/operators/live-answers';
import { token, useAnswer } from './api';
import { LOOK_INTERVAL, useFleet } from './fleet-answer';
import { type Happening, happeningsOf } from './happenings';
import { useRecorded } from './history';
import { live } from './live-events';
import { addressOf } from './route';
import { useStore } from './store';
import { count, counted, secondsOf } from './text';

/** What operators have changed, the newest at the end; none without a token. @param version another one: read again */
export function useChanges(version?: number): readonly Change[] {
  const path = useStore(token) === '' ? undefined : 'changes';
  return (
    useAnswer<{ readonly changes: readonly Change[] }>(path, { every: LOOK_INTERVAL, version }).value?.changes ?? []
  );
}

/** All that has happened, callers that are newly limited, and what operators have changed; the newest come first. */
export function useHappenings(): readonly Happening[] {
  const { value } = useRecorded();
  const fleet = useFleet();
  const { event } = useStore(live);
  const changed = useChanges().map((change) => happeningOf(change, fleet !== undefined));
  const limited = (fleet?.offenders ?? event?.offenders ?? []).flatMap(limitedHappening);
  return [...happeningsOf(value?.marks ?? []), ...limited, ...changed].sort((one, other) => other.at - one.at);
}

function limitedHappening({ domain, descriptor, rule, since, recent, isShadow }: Offender): readonly Happening[] {
  if (since === null || isShadow) return [];
  const text = `${rule === '' ? 'a limit of the request' : rule}, ${counted(recent, 'call')} in the last 10 min`;
  const link = { href: addressOf('callers', { domain, descriptor }), label: descriptor, isName: true };
  return [{ at: secondsOf(since), shape: 'limited', title: 'Newly limited', text, link }];
}

export function happeningOf(change: Change, isFleet: boolean): Happening {
  const { at, name, from, what, domain, descriptor, window, before, after, reason, instance } = change;
  const which = window === null ? '' : ` of the ${window}`;
  const by = `${name === '' ? '' : `${name}, `}from ${from}${isFleet ? ` on ${instance}` : ''}`;
  return {
    at: secondsOf(at),
    shape: 'change',
    title: `${what === 'counter set' ? 'Counter set' : 'Counter cleared'}${which}`,
    text: `${count(before)} → ${count(after)} · ${by}${reason === null ? '' : ` · “${reason}”`}`,
    link: { href: addressOf('callers', { domain, descriptor }), label: descriptor, isName: true },
  };
}
