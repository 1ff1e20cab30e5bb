import type { Fault } from '../../src/streams/server-report';
import type { ShownServer } from '../../src/streams/server-views';
import { mergeServers } from '../../src/workers/servers';

/** As a worker reports it. */
function seen(more: Partial<ShownServer> = {}): ShownServer {
  return {
    ...{ server: 'a', store: 'main', condition: 'answering', since: 1_000, isHeldBack: false },
    rates: { requests: 0, failures: 0, latency: null },
    ...more,
  };
}

function fault(began: number, milliseconds: number, calls: number): Fault {
  return { began, milliseconds, calls, isUp: true };
}

describe('a server that several workers see', () => {
  it('is in the worst condition of all, since the first of them saw it, and held back if it is in one', () => {
    const [server, ...others] = mergeServers([
      seen({ condition: 'slow', since: 500, lastSuccess: 700 }),
      seen({ condition: 'silent', since: 2_200, troubleSince: 2_100, reason: 'it does not answer' }),
      seen({ condition: 'silent', since: 2_000, troubleSince: 2_150, isHeldBack: true, lastSuccess: 800 }),
    ]);
    expect(others).toEqual([]);
    expect(server).toMatchObject({
      ...{ server: 'a', condition: 'silent', since: 2_000, troubleSince: 2_100 },
      ...{ isHeldBack: true, reason: 'it does not answer', lastSuccess: 800 },
    });
  });

  it('is known if one worker has heard of it', () => {
    expect(mergeServers([seen({ condition: 'unknown' }), seen()])).toMatchObject([{ condition: 'answering' }]);
  });

  it('has the sums of the rates, and the mean time of the requests that have not failed', () => {
    const [server] = mergeServers([
      seen({ rates: { requests: 4, failures: 1, latency: 2 } }),
      seen({ rates: { requests: 1, failures: 0, latency: 6 } }),
      seen({ rates: { requests: 5, failures: 5, latency: null } }),
    ]);
    expect(server!.rates).toEqual({ requests: 10, failures: 6, latency: 3 });
  });

  it('has the last fault from the first worker that saw it to the last, with the calls of all', () => {
    const [server] = mergeServers([
      seen({ lastFault: fault(20_000, 3_000, 5) }),
      seen({ lastFault: fault(19_900, 2_000, 2) }),
      seen({ lastFault: fault(1_000, 2_000, 100) }),
      seen(),
    ]);
    expect(server!.lastFault).toEqual(fault(19_900, 3_100, 7));
  });

  it('has the calls of the present fault of all workers that see it', () => {
    function seenBy(...affected: readonly (number | undefined)[]) {
      return mergeServers(affected.map((calls) => seen({ affected: calls })))[0]!.affected;
    }
    expect([seenBy(2, undefined, 3), seenBy(undefined), seenBy(0)]).toEqual([5, undefined, 0]);
  });

  it('is another one in another store, or with another address', () => {
    expect(mergeServers([seen(), seen({ store: 'per second' }), seen({ server: 'b' }), seen()])).toHaveLength(3);
  });
});
