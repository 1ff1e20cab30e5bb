import type { OpenReservation } from '../../streams/ports/reservations';

/**
 * Most reservations of a counter that end before one with so many steps is opened: the rest with the next one. In all
 * about 100.
 */
export function endedAtOnce(steps: number): number {
  return Math.max(1, Math.floor(100 / Math.max(1, steps)));
}

/** The member of a step with what was added to the counter and the text of its `Hold`, as lists of stores have it. */
export function heldMember(member: string, held: number, hold = ''): string {
  return `${member[0]}${held}${hold}${member.slice(1)}`;
}

/** What such a member says. */
export function openReservation(member: string, expiresAt: number): OpenReservation {
  const [hits, , ...id] = member.slice(1).split(':');
  return {
    id: id.join(':'),
    hits: Number.parseInt(hits!, 10),
    expiresAt,
    onExpiry: member.startsWith('s') ? 'settle' : 'cancel',
  };
}
