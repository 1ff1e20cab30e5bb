import { type Observable, combineLatest, distinctUntilChanged, map } from 'rxjs';

/** Whether the service is healthy, and which of its components are not. */
export interface Health {
  readonly healthy: boolean;
  /** Names of the components that are not healthy. */
  readonly unhealthy: readonly string[];
}

/** The health before every component has reported its state. */
export const STARTING: Health = { healthy: false, unhealthy: [] };

/**
 * Combines the states of components into one health: healthy only while every component is. Emits when every component has
 * reported its state, then at each change.
 *
 * @param components by name; a component that is switched off is left out
 */
export function health(components: Readonly<Record<string, Observable<boolean>>>): Observable<Health> {
  return combineLatest(components).pipe(
    map((states) => {
      const unhealthy = Object.keys(states).filter((name) => !states[name]);
      return { healthy: unhealthy.length === 0, unhealthy };
    }),
    distinctUntilChanged((one, other) => one.unhealthy.join() === other.unhealthy.join()),
  );
}
