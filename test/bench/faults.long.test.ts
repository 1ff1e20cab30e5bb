import { type FaultCase, playFault } from '../../bench/faults/play-fault';
import { STORES } from '../../bench/faults/stores';
import { faultTests } from '../integration/kvstore/fault-rows';

/** No caller gives up on a busy machine; before, in and after the fault so many milliseconds. */
const OPTIONS = { rate: 100, times: [1_000, 3_000, 6_000], headers: 'envoy' } as const;

/** Calls that were in flight when the fault began may not be counted. */
const IN_FLIGHT = 3;

const SUBJECTS: Readonly<Record<FaultCase['store'], string>> = {
  single: 'a single server is',
  sentinel: 'the master of sentinels is',
  cluster: 'the masters of a cluster are',
  memcached: 'memcached is',
};

function course(store: FaultCase['store'], fault: FaultCase['fault'], policy: FaultCase['policy'] = 'local') {
  return [`${SUBJECTS[store]} ${fault}, with \`${policy}\``, { store, fault, policy }] as const;
}

function courses(store: FaultCase['store']) {
  return [course(store, 'killed'), course(store, 'stopped'), course(store, 'slow')];
}

const [single, ...others] = STORES;

describe('a service', () => {
  faultTests<FaultCase>('A store that fails with a policy', {
    suite: 'long',
    courses: Object.fromEntries([
      ...courses(single),
      course(single, 'killed', 'deny'),
      course(single, 'stopped', 'allow'),
      course(single, 'killed', 'error'),
      ...others.flatMap(courses),
    ]),
    play: async (which, { callersSee }) => {
      const { byPolicy, failed, recovered, overBound, appliedTwice } = await playFault(which, OPTIONS);
      const [before, ...during] = failed;
      expect({ before, appliedTwice }).toEqual({ before: 0, appliedTwice: 0 });
      if (which.policy === 'local') expect(overBound).toBeLessThanOrEqual(IN_FLIGHT);
      expect(during.some((calls) => calls > 0)).toBe(callersSee.length > 0);
      expect(byPolicy > 0).toBe(which.policy !== 'error');
      expect(recovered).toBeLessThan(OPTIONS.times[2] - 500);
    },
  });
});
