import { type SharedLimits, expectSharedLimits } from './shared-limits';

describe('two services that share limits of 100 while their store is away', () => {
  it.each<SharedLimits>([
    { what: 'loses its counts', isStopped: false, offered: 100, total: 101, stored: 400 },
    {
      ...{ what: 'loses its counts, as many as there are', share: 'auto', isStopped: false },
      ...{ offered: 100, total: 101, stored: 400 },
    },
    // What they have not used up is there again.
    { what: 'loses its counts early', isStopped: false, offered: 20, total: 141, stored: 240 },
  ])('let pass what is left of a limit when it $what, and add each hit once', (row) => expectSharedLimits(row));
});
