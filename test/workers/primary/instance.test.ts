import { BehaviorSubject, EMPTY, NEVER, Subject, of } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import type { RuleEvent } from '../../../src/streams/ports/rule-source';
import { type InstanceSources, instance } from '../../../src/workers/primary/instance';

type Members = readonly {
  readonly isServing: boolean;
  readonly isResponsive: boolean;
  readonly state:
    | { readonly health: { healthy: boolean; unhealthy: string[] }; readonly awaited: ('rules' | 'counter store')[] }
    | undefined;
}[];

const scheduler = new TestScheduler(() => undefined);

function worker(
  isServing: boolean,
  unhealthy: string[] = [],
  awaited: ('rules' | 'counter store')[] = [],
): Members[number] {
  return { isServing, isResponsive: true, state: { health: { healthy: unhealthy.length === 0, unhealthy }, awaited } };
}

function instanceOf(members: Members, more: Partial<InstanceSources> = {}) {
  const members$ = new BehaviorSubject<Members>(members);
  const streams = instance(
    { rules$: EMPTY, members$, complete$: NEVER, termination$: NEVER, ...more },
    { startsWithoutRules: true, needsDomain: false, scheduler },
  );
  const subscription = streams.health$.subscribe();
  subscription.add(streams.awaited$.subscribe());
  return { ...streams, members$, subscription };
}

describe('the health of an instance', () => {
  it('is good while the components of all workers are', () => {
    expect(instanceOf([worker(true), worker(true)]).health$.value).toEqual({ healthy: true, unhealthy: [] });
  });

  it('names a component that is unhealthy in any worker once', () => {
    const { health$ } = instanceOf([worker(true, ['counter store']), worker(true), worker(true, ['counter store'])]);
    expect(health$.value).toEqual({ healthy: false, unhealthy: ['counter store'] });
  });

  it('ignores a worker that takes no connections yet', () => {
    expect(instanceOf([worker(true), worker(false, ['counter store'])]).health$.value.healthy).toBe(true);
  });

  it('is bad while no worker takes connections', () => {
    const { health$, members$ } = instanceOf([worker(true)]);
    members$.next([worker(false)]);
    expect(health$.value).toEqual({ healthy: false, unhealthy: ['workers'] });
    members$.next([worker(true)]);
    expect(health$.value.healthy).toBe(true);
  });

  it('is bad while no worker answers', () => {
    const silent = { ...worker(true), isResponsive: false };
    expect(instanceOf([silent, worker(true)]).health$.value.healthy).toBe(true);
    expect(instanceOf([silent]).health$.value).toEqual({ healthy: false, unhealthy: ['workers'] });
  });

  it('is bad from the first signal on', () => {
    const termination$ = new Subject<unknown>();
    const { health$ } = instanceOf([worker(true)], { termination$ });
    termination$.next('SIGTERM');
    expect(health$.value).toEqual({ healthy: false, unhealthy: ['termination'] });
  });
});

describe('what an instance waits for', () => {
  it('is what its workers wait for', () => {
    const { awaited$, members$ } = instanceOf([worker(false, [], ['counter store']), worker(false)]);
    expect(awaited$.value).toEqual(['counter store']);
    members$.next([worker(false), worker(true)]);
    expect(awaited$.value).toEqual(['workers']);
    members$.next([worker(true), worker(true)]);
    expect(awaited$.value).toEqual([]);
  });

  it('includes the rules until the primary has loaded them', () => {
    const rules$ = new Subject<RuleEvent>();
    const streams = instance(
      { rules$, members$: of([worker(true)]), complete$: NEVER, termination$: NEVER },
      { startsWithoutRules: false, needsDomain: false, scheduler },
    );
    const subscription = streams.awaited$.subscribe();
    expect(streams.awaited$.value).toEqual(['rules']);
    subscription.unsubscribe();
  });
});

describe('the phases of an instance', () => {
  it('become serving when all workers are, and fail with the worker that cannot start', () => {
    const complete$ = new Subject<unknown>();
    const phases: string[] = [];
    const { phase$ } = instanceOf([worker(true)], { complete$ });
    const subscription = phase$.subscribe({ next: (phase) => phases.push(phase), error: () => phases.push('failed') });
    complete$.next(true);
    complete$.error(new Error('a worker cannot start'));
    expect(phases).toEqual(['starting', 'serving']);
    subscription.unsubscribe();
    const failing = instanceOf([worker(true)], { complete$: new Subject() });
    failing.subscription.unsubscribe();
  });
});
