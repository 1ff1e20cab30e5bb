import { type CheckOptions, checks } from '../../src/streams/checks';
import { type Health, STARTING } from '../../src/streams/health';

const HEALTHY: Health = { healthy: true, unhealthy: [] };

function unhealthy(...names: string[]): Health {
  return { healthy: false, unhealthy: names };
}

/** The failing checks, each with its reason. */
function failing(health: Health, options: CheckOptions = { hasWorkers: true }): Record<string, string | undefined> {
  const failed = checks(health, options).filter(({ failure }) => failure !== undefined);
  return Object.fromEntries(failed.map(({ name, failure }) => [name, failure]));
}

describe('the checks of readiness', () => {
  it('are listed in a fixed order, with workers only for an instance that has them', () => {
    const names = [true, false].map((hasWorkers) => checks(HEALTHY, { hasWorkers }).map(({ name }) => name));
    expect(names).toEqual([
      ['configuration', 'store', 'workers', 'draining'],
      ['configuration', 'store', 'draining'],
    ]);
  });

  it('all pass while the service is healthy', () => {
    expect(failing(HEALTHY)).toEqual({});
  });

  it.each([
    ['configuration', 'configuration', 'no domain in the active rules'],
    ['counter store', 'store', 'no connection to the counter store'],
    ['workers', 'workers', 'no worker is ready'],
    ['termination', 'draining', 'the process has received a termination signal'],
  ])('fail for the unhealthy component "%s" as %s', (component, name, reason) => {
    expect(failing(unhealthy(component))).toEqual({ [name]: reason });
  });

  it('give what is awaited as the reason, before the unhealthy component', () => {
    expect(failing(unhealthy('counter store'), { awaited: ['rules', 'counter store'], hasWorkers: false })).toEqual({
      configuration: 'waiting for the first valid rules',
      store: 'waiting for the counter store',
    });
    expect(failing(HEALTHY, { awaited: ['workers'], hasWorkers: true })).toEqual({
      workers: 'waiting for the workers',
    });
  });

  it.each([
    ['has not been reported', STARTING],
    ['has a component that is not in the list', unhealthy('something new')],
  ])('all fail when the health %s', (_, health) => {
    const reason = 'not reported yet';
    expect(failing(health, { hasWorkers: false })).toEqual({ configuration: reason, store: reason, draining: reason });
  });
});
