import type { Awaited } from './awaited';
import type { Health } from './health';

/** What readiness depends on, as probes list it. */
export type CheckName = 'configuration' | 'store' | 'workers' | 'listeners' | 'draining';

export interface Check {
  readonly name: CheckName;
  /** Why it fails, without addresses and credentials; undefined while it does not. */
  readonly failure: string | undefined;
}

type Failure = Check & { readonly failure: string };

/** What an unhealthy component means for readiness. */
const UNHEALTHY: Readonly<Record<string, Failure>> = {
  configuration: { name: 'configuration', failure: 'no domain in the active rules' },
  'counter store': { name: 'store', failure: 'no connection to the counter store' },
  workers: { name: 'workers', failure: 'no worker is ready' },
  termination: { name: 'draining', failure: 'the process has received a termination signal' },
};

/** The same for what is awaited at the start, which says more. */
const AWAITED: Readonly<Record<Awaited, Failure>> = {
  rules: { name: 'configuration', failure: 'waiting for the first valid rules' },
  'counter store': { name: 'store', failure: 'waiting for the counter store' },
  workers: { name: 'workers', failure: 'waiting for the workers' },
};

/** What the service waits for at the start, in words. */
export function describeAwaited(item: Awaited): string {
  return AWAITED[item].failure;
}

export interface CheckOptions {
  /** What the service still waits for before it serves. */
  readonly awaited?: readonly Awaited[];
  /** Whether the instance has workers. */
  readonly hasWorkers: boolean;
}

/** The checks of a service with a health, in the order in which they are listed. All pass exactly when it is healthy and nothing is awaited. */
export function checks({ healthy, unhealthy }: Health, { awaited = [], hasWorkers }: CheckOptions): readonly Check[] {
  const failures = [...awaited.map((item) => AWAITED[item]), ...unhealthy.map((name) => UNHEALTHY[name])];
  const isKnown = healthy || failures.some((failure) => failure !== undefined);
  function check(name: CheckName): Check {
    const failure = isKnown ? failures.find((failed) => failed?.name === name)?.failure : 'not reported yet';
    return { name, failure };
  }
  return [check('configuration'), check('store'), ...(hasWorkers ? [check('workers')] : []), check('draining')];
}
