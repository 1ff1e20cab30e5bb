import type { SchedulerAction, SchedulerLike } from 'rxjs';
import { turnScheduler } from '../../../src/main/turn-scheduler';

/** The scheduler of the service, on which waits of some lengths take other ones, all in milliseconds. */
export function schedulerWith(waits: Readonly<Record<number, number>>): SchedulerLike {
  function waitOf(wait = 0): number {
    return waits[wait] ?? wait;
  }
  return {
    now: () => turnScheduler.now(),
    schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, wait?: number, state?: T) {
      function run(this: SchedulerAction<T>, given?: T): void {
        // Also of work that schedules itself again.
        this.schedule = (next, again) => {
          this.add(turnScheduler.schedule(run, waitOf(again), next));
          return this;
        };
        work.call(this, given);
      }
      return turnScheduler.schedule(run, waitOf(wait), state);
    },
  };
}
