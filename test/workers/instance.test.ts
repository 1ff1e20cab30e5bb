import { BehaviorSubject, EMPTY, NEVER, Subject } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { sendJson } from '../../src/workers/channel/json-frames';
import { StreamChannel } from '../../src/workers/channel/stream-channel';
import { TOPICS } from '../../src/workers/channel/topics';
import type { WorkerState } from '../../src/workers/messages';
import { type InstanceSources, instance } from '../../src/workers/primary/instance';
import { PrimaryLink } from '../../src/workers/worker/primary-link';
import { until } from '../support/waiting/until';
import { duplexPair } from '../support/workers/channel-pair';

type Awaited = WorkerState['awaited'];
type Members = readonly { isServing: boolean; isResponsive: boolean; state: WorkerState }[];

const GOOD = { healthy: true, unhealthy: [] };
const NO_WORKERS = { healthy: false, unhealthy: ['workers'] };

function worker(isServing: boolean, unhealthy: string[] = [], awaited: Awaited = []): Members[number] {
  return { isServing, isResponsive: true, state: { health: { healthy: unhealthy.length === 0, unhealthy }, awaited } };
}

function instanceOf(members: Members, more: Partial<InstanceSources> = {}, startsWithoutRules = true) {
  const members$ = new BehaviorSubject<Members>(members);
  const sources = { rules$: EMPTY, members$, complete$: NEVER, termination$: NEVER, ...more };
  const scheduler = new TestScheduler(() => undefined);
  const streams = instance(sources, { startsWithoutRules, needsDomain: false, scheduler });
  streams.health$.subscribe().add(streams.awaited$.subscribe());
  return { ...streams, members$ };
}

describe('an instance', () => {
  it.each([
    ['good while the components of all workers are', GOOD, [worker(true), worker(true)]],
    [
      'bad, with the name of each component that is unhealthy in any worker',
      { healthy: false, unhealthy: ['counter store'] },
      [worker(true, ['counter store']), worker(true), worker(true, ['counter store'])],
    ],
    ['that of the workers that take connections', GOOD, [worker(true), worker(false, ['counter store'])]],
    ['bad while no worker takes connections', NO_WORKERS, [worker(false)]],
    ['good while a worker answers', GOOD, [{ ...worker(true), isResponsive: false }, worker(true)]],
    ['bad while no worker answers', NO_WORKERS, [{ ...worker(true), isResponsive: false }]],
  ])('has a health that is %s', (_, health, members) => {
    const { health$, members$ } = instanceOf([worker(true)]);
    members$.next(members);
    expect(health$.value).toEqual(health);
    members$.next([worker(true)]);
    expect(health$.value).toEqual(GOOD);
  });

  it('is unhealthy from the first signal on', () => {
    const termination$ = new Subject<unknown>();
    const { health$ } = instanceOf([worker(true)], { termination$ });
    termination$.next('SIGTERM');
    expect(health$.value).toEqual({ healthy: false, unhealthy: ['termination'] });
  });

  it('waits for what its workers wait for, for its workers, and for the rules', () => {
    const { awaited$, members$ } = instanceOf([worker(false, [], ['counter store']), worker(false)]);
    expect(awaited$.value).toEqual(['counter store']);
    members$.next([worker(false), worker(true)]);
    expect(awaited$.value).toEqual(['workers']);
    members$.next([worker(true), worker(true)]);
    expect(awaited$.value).toEqual([]);
    expect(instanceOf([worker(true)], { rules$: new Subject<RuleEvent>() }, false).awaited$.value).toEqual(['rules']);
  });

  it('serves when all workers do, and fails with the worker that cannot start', () => {
    const complete$ = new Subject<unknown>();
    const phases: string[] = [];
    const { phase$ } = instanceOf([worker(true)], { complete$ });
    phase$.subscribe({ next: (phase) => phases.push(phase), error: () => phases.push('failed') });
    complete$.next(true);
    complete$.error(new Error('a worker cannot start'));
    expect(phases).toEqual(['starting', 'serving']);
  });
});

test('a worker has the health of the primary, and is unhealthy before the drain begins when the primary is gone', async () => {
  const [own, others] = duplexPair();
  const link = new PrimaryLink(own);
  const healthAtDrain: unknown[] = [];
  link.health$.subscribe();
  link.drain$.subscribe(() => healthAtDrain.push(link.health$.value));
  link.start();
  sendJson(new StreamChannel(others), TOPICS.health, GOOD);
  await until('the worker is informed', () => link.health$.value.healthy);
  own.destroy();
  await until('the drain begins', () => healthAtDrain.length > 0);
  expect(healthAtDrain).toEqual([{ healthy: false, unhealthy: ['termination'] }]);
});
