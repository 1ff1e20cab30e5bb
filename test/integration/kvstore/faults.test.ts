import { CLUSTER_FAULTS, CONNECTION_FAULTS, REPLY_FAULTS, SENTINEL_FAULTS } from './fault-courses';
import { playSingleFault } from './fault-play';
import { faultTests } from './fault-rows';

const suite = 'fast';

describe('counters in Redis under load', () => {
  faultTests('Single server: connections', {
    suite,
    courses: CONNECTION_FAULTS,
    play: (course, row) => playSingleFault(course, row, 300),
  });
  faultTests('Single server: error replies', {
    suite,
    courses: REPLY_FAULTS,
    // The server answers at once: on a busy machine, too, no call ends before its reply has been read.
    play: (course, row) => playSingleFault(course, row, 5_000),
  });
  // Their rows are played by faults.long.test.ts.
  faultTests('Sentinels', { suite, courses: SENTINEL_FAULTS, play: () => Promise.reject(new Error('not here')) });
  faultTests('Cluster', { suite, courses: CLUSTER_FAULTS, play: () => Promise.reject(new Error('not here')) });
});
