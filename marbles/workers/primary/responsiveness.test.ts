import { responsiveness } from '../../../src/workers/primary/responsiveness';
import { patientTimer } from '../../../src/workers/primary/patient-timer';
import { marbles } from '../../support/marbles';

const STATES = { r: 'responsive', s: 'silent', k: 'stuck' } as const;

describe('the responsiveness of a worker', () => {
  it('is asked for every second while there is a subscriber', () =>
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const asked: number[] = [];
      const states = responsiveness({ ask: () => asked.push(scheduler.now()), answers$: cold('-'), scheduler });
      expectObservable(states, '2500ms !').toBe('r', STATES);
      flush();
      expect(asked).toEqual([0, 1000, 2000]);
    }));

  it('does not change while the worker answers', () =>
    marbles(({ cold, expectObservable }, scheduler) => {
      const answers$ = cold('9s a 9s a 9s a');
      expectObservable(responsiveness({ ask: () => undefined, answers$, scheduler }), '28s !').toBe('r', STATES);
    }));

  it('changes after ten seconds of silence and back with the next answer, as often as that happens', () =>
    marbles(({ cold, expectObservable }, scheduler) => {
      const answers$ = cold('1s a 11999ms a 15s a');
      const expected = '     r 10999ms s 1999ms r 9999ms s 5000ms r';
      expectObservable(responsiveness({ ask: () => undefined, answers$, scheduler }), '30s !').toBe(expected, STATES);
    }));

  it('is stuck after a minute of silence', () =>
    marbles(({ cold, expectObservable }, scheduler) => {
      const expected = 'r 9999ms s 49999ms k';
      expectObservable(responsiveness({ ask: () => undefined, answers$: cold('-'), scheduler }), '61s !').toBe(
        expected,
        STATES,
      );
    }));

  it('is measured with several timers, so that answers are read after the primary itself stood still', () =>
    marbles(({ expectObservable, flush }, scheduler) => {
      const delays: (number | undefined)[] = [];
      const recording = {
        now: () => scheduler.now(),
        schedule: ((...args: Parameters<typeof scheduler.schedule>) => {
          delays.push(args[1]);
          return scheduler.schedule(...args);
        }) as typeof scheduler.schedule,
      };
      expectObservable(patientTimer(100, recording)).toBe('100ms (x|)', { x: 0 });
      flush();
      expect(delays).toEqual(Array.from({ length: 10 }, () => 10));
    }));
});
