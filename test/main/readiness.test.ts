import { BehaviorSubject } from 'rxjs';
import { Readiness } from '../../src/main/readiness';
import type { Awaited } from '../../src/streams/awaited';
import type { Service } from '../../src/streams/service';

describe('the status of a service', () => {
  it('does not fail when what is awaited fails', () => {
    const awaited$ = new BehaviorSubject<readonly Awaited[]>(['counter store']);
    const health$ = new BehaviorSubject({ healthy: true, unhealthy: [] as readonly string[] });
    const streams = { awaited$, health$ } as unknown as Pick<Service, 'health$' | 'awaited$'>;
    const readiness = new Readiness(streams, { hasWorkers: false });
    const seen: string[] = [];
    // Without an observer for it, a failure would be thrown in a timer.
    readiness.status$.subscribe({ next: (status) => seen.push(status), error: () => seen.push('failed') });
    awaited$.error(new Error('the store was not reached in time'));
    readiness.opened();
    expect(seen).toEqual(['starting: waiting for the counter store', 'serving']);
  });
});
