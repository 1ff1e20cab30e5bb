import type { Fleet } from '../../../src/operators/live-answers';
import { LARGEST_ANSWERS, reportOf } from '../../support/servers/large-peers';
import type { Attack } from '../peers';

/** What peers answer that is wrong in one place. */
const WRONG = [
  { rules: { hits: [null], denials: [] } },
  { offenders: { since: 0, floor: 0, offenders: [null] } },
  { health: null },
  { rates: { calls: 1e300 } },
].map((member) => JSON.stringify({ ...reportOf('wrong'), ...member }));

const WAYS = Object.values(LARGEST_ANSWERS);

/** Milliseconds until all are asked: an instance reads 300 KiB of answers in a second. */
const ALL_ASKED_MS = 180_000;

/** A viewer looks at instances with wrong answers, and with each kind of the largest ones. */
function looks(count: number, times: number): Attack {
  return {
    instances: { count, answerOf: (peer) => WRONG[peer - 1] ?? WAYS[peer % WAYS.length]!(peer) },
    run: async ({ weir }, answers) => {
      for (let look = 0; look < times; look += 1) {
        const { instances } = await weir.until(
          'all instances are asked',
          async () => {
            const fleet = JSON.parse(await weir.debug('/api/fleet')) as Fleet;
            return fleet.pending === 0 && fleet.instances.length === 1 + count && fleet;
          },
          ALL_ASKED_MS,
        );
        for (const { name, problem, note } of instances.slice(1)) {
          if (problem === null) answers.add(name !== null && note !== null ? 'what was dropped' : 'all was kept');
          else answers.add(problem.includes('is not that of an instance: $.') ? 'what is wrong' : problem);
        }
      }
    },
  };
}

/** What other instances answer by mistake, or when an attacker has taken them over. */
export const INSTANCES = {
  '12 instances with wrong answers and with answers of 256 KiB, seen 5 times': looks(12, 5),
  '100 instances with wrong answers and with answers of 256 KiB, seen 100 times': looks(100, 100),
} as const satisfies Record<string, Attack>;
