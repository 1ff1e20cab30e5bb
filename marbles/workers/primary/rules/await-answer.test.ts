import { awaitAnswer } from '../../../../src/workers/primary/rules/await-answer';
import { marbles } from '../../../support/marbles';

describe('awaitAnswer', () => {
  it('reports silence once when nothing arrives in time, and stays subscribed', () =>
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const answers = cold('  --a 100ms b|');
      const expected = '      --a 100ms b|';
      const silences: number[] = [];
      function onSilence() {
        silences.push(scheduler.now());
      }
      expectObservable(answers.pipe(awaitAnswer({ limit: 50, scheduler, onSilence }))).toBe(expected);
      expectSubscriptions(answers.subscriptions).toBe('^ 103ms !');
      flush();
      expect(silences).toEqual([52]);
    }));

  it('waits again after each value, and no longer after the end', () =>
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const answers = cold('  40ms a 40ms b 40ms |');
      const expected = '      40ms a 40ms b 40ms |';
      const silences: number[] = [];
      function onSilence() {
        silences.push(scheduler.now());
      }
      expectObservable(answers.pipe(awaitAnswer({ limit: 50, scheduler, onSilence }))).toBe(expected);
      scheduler.schedule(() => undefined, 1_000);
      flush();
      expect(silences).toEqual([]);
    }));

  it('measures with several timers, so that this process can read answers after it stood still', () =>
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const delays: (number | undefined)[] = [];
      const recording = {
        now: () => scheduler.now(),
        schedule: ((...args: Parameters<typeof scheduler.schedule>) => {
          delays.push(args[1]);
          return scheduler.schedule(...args);
        }) as typeof scheduler.schedule,
      };
      const answers = cold('  1s |');
      expectObservable(
        answers.pipe(awaitAnswer({ limit: 100, scheduler: recording, onSilence: () => undefined })),
      ).toBe('1s |');
      flush();
      expect(delays).toEqual(Array.from({ length: 10 }, () => 10));
    }));

  it('ends its timers and unsubscribes from the source when it is unsubscribed from', () =>
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const answers = cold('  --a-----');
      const unsubscribe = '   -----!';
      const silences: number[] = [];
      function onSilence() {
        silences.push(scheduler.now());
      }
      expectObservable(answers.pipe(awaitAnswer({ limit: 10, scheduler, onSilence })), unsubscribe).toBe('--a');
      expectSubscriptions(answers.subscriptions).toBe('^----!');
      flush();
      expect(silences).toEqual([]);
    }));
});
