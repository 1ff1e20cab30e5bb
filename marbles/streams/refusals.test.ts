import { refusalPhases } from '../../src/streams/refusals';
import { marbles } from '../support/marbles';

const PHASES = {
  b: { kind: 'began', first: 'a' },
  e: { kind: 'ended', first: 'a', count: 1 },
  f: { kind: 'ended', first: 'a', count: 3 },
  c: { kind: 'began', first: 'd' },
  g: { kind: 'ended', first: 'd', count: 1 },
};

describe('refusalPhases', () => {
  it('emits nothing without a refusal', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const refused = cold('      ----|');
      const expected = '          ----|';
      expectObservable(refusalPhases(refused, scheduler)).toBe(expected);
    });
  });

  it('begins with the first refusal and ends five seconds after the last, with their number', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const refused = cold('      -aaa 10s        ');
      const subscription = '      ^----- 9s !     ';
      const expected = '          -b-- 4999ms f   ';
      expectObservable(refusalPhases(refused, scheduler), subscription).toBe(expected, PHASES);
      expectSubscriptions(refused.subscriptions).toBe('^----- 9s !');
    });
  });

  it('stays one phase while refusals are less than five seconds apart', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const refused = cold('      a 4s a 4s a 9s  ');
      const subscription = '      ^ 15s !         ';
      const expected = '          b 4s - 4s - 4999ms f';
      expectObservable(refusalPhases(refused, scheduler), subscription).toBe(expected, PHASES);
    });
  });

  it('begins again with a refusal after the end', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const refused = cold('      a 6s d 9s          ');
      const subscription = '      ^ 15s !            ';
      const expected = '          b 4999ms e 1s c 4999ms g';
      expectObservable(refusalPhases(refused, scheduler), subscription).toBe(expected, PHASES);
    });
  });

  it('ends the phase in progress when the refusals complete', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const refused = cold('      a--|     ');
      const expected = '          b--(e|)  ';
      expectObservable(refusalPhases(refused, scheduler)).toBe(expected, PHASES);
    });
  });

  it('fails with the refusals', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const refused = cold('      a--#     ');
      const expected = '          b--#     ';
      expectObservable(refusalPhases(refused, scheduler)).toBe(expected, PHASES);
    });
  });
});
