import { defer, of } from 'rxjs';
import { exhaustMapWithTrailing } from '../../src/streams/exhaust-map-with-trailing';
import { flushing, lastFlush } from '../../src/streams/flushing';
import { latest } from '../../src/streams/latest';
import { refusalPhases } from '../../src/streams/refusals';
import { marbles } from '../support/marbles';

describe('exhaustMapWithTrailing', () => {
  it('projects a value at once, and of those that arrive while an inner observable runs only the latest', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -abcd---e----');
      const a = cold('      ----x|       ');
      const d = cold('           ----y|  ');
      const e = cold('                z| ');
      const expected = '   -----x----yz-';
      const loads: Record<string, typeof a> = { a, d, e };
      expectObservable(hints.pipe(exhaustMapWithTrailing((hint) => loads[hint] ?? []))).toBe(expected);
      expectSubscriptions(a.subscriptions).toBe('-^----!');
      expectSubscriptions(d.subscriptions).toBe('------^----!');
      expectSubscriptions(e.subscriptions).toBe('-----------^!');
    }));

  it('projects every value when the inner observables complete synchronously', () =>
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -(abc)--d-|');
      const expected = '   -(abc)--d-|';
      expectObservable(hints.pipe(exhaustMapWithTrailing((hint) => of(hint)))).toBe(expected);
      expectSubscriptions(hints.subscriptions).toBe('^---------!');
    }));

  it('projects the waiting value after the source has completed', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const hints = cold(' -ab|');
      const load = cold('   ---x|');
      const expected = '   ----x---x|';
      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe(expected);
      expectSubscriptions(load.subscriptions).toBe(['-^---!', '-----^---!']);
    }));

  it('unsubscribes from the source and the inner observable, also when that fails', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -ab-----');
      const load = cold('   -------x|');
      const failing = cold('-#', undefined, new Error('broken'));
      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load)), '^---!').toBe('-');
      expectObservable(hints.pipe(exhaustMapWithTrailing(() => failing))).toBe('--#', undefined, new Error('broken'));
      expectSubscriptions(load.subscriptions).toBe('-^--!');
      expectSubscriptions(failing.subscriptions).toBe('-^!');
      expectSubscriptions(hints.subscriptions).toBe(['^---!', '^-!']);
    }));
});

describe('flushing', () => {
  it.each([
    ['starts a flush at every tick, and emits nothing', 'x|', ['----^!', '--------^!'], '------------'],
    ['skips the ticks during a slow flush', '------|', ['----^-----!'], '------------'],
    ['unsubscribes from the flush when it is unsubscribed from', '---------', ['----^------!'], '------------'],
    ['fails with a flush that fails', '-#', ['----^!'], '-----#'],
  ])('%s', (_, flushed, subscriptions, expected) => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const flush = cold(flushed);
      const flushing$ = flushing(() => flush, 4, scheduler);
      expectObservable(flushing$, '^----------!').toBe(expected);
      expectSubscriptions(flush.subscriptions).toBe(subscriptions);
    });
  });
});

describe('the last flush of an output', () => {
  it('waits for a flush in flight, and then sends what that one has missed', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const first$ = cold(' ---(a|)');
      const second$ = cold('-(b|)');
      const flushes = [first$, second$];
      const flush$ = defer(() => flushes.shift() ?? []);
      expectObservable(lastFlush(flush$, scheduler)).toBe('---a(b|)');
      expectSubscriptions(first$.subscriptions).toBe('^--!');
      expectSubscriptions(second$.subscriptions).toBe('---^!');
    }));

  it('ends after two seconds when a flush does not', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const hanging$ = cold('-');
      const flushes = [cold('500ms (a|)')];
      const flush$ = defer(() => flushes.shift() ?? hanging$);
      expectObservable(lastFlush(flush$, scheduler)).toBe('500ms a 1499ms |');
      expectObservable(lastFlush(cold('-'), scheduler)).toBe('2s |');
      expectSubscriptions(hanging$.subscriptions).toBe('500ms ^ 1499ms !');
    }));
});

describe('the latest value of a stream', () => {
  it('is the initial one, then the last one, from the one subscription, which late subscribers share and the last ends', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const source = cold('  --a----b-#');
      const values$ = latest(source, 'none');
      const read: string[] = [];
      for (const frame of [1, 4, 9]) scheduler.schedule(() => read.push(values$.value), frame);
      expectObservable(values$, '^-------!').toBe('     --a----b-');
      expectObservable(values$, '----^---!').toBe('     ----a--b-');
      flush();
      expectSubscriptions(source.subscriptions).toBe('^-------!');
      expect(read).toEqual(['none', 'a', 'b']);
    });
  });

  it('stays the last one after the source has failed', () => {
    marbles(({ cold, expectObservable, flush }) => {
      const values$ = latest(cold('a-#'), 'none');
      expectObservable(values$).toBe('a-#');
      flush();
      expect(values$.value).toBe('a');
    });
  });
});

describe('refused connections', () => {
  const PHASES = {
    b: { kind: 'began', first: 'a' },
    e: { kind: 'ended', first: 'a', count: 1 },
    f: { kind: 'ended', first: 'a', count: 3 },
    c: { kind: 'began', first: 'd' },
    g: { kind: 'ended', first: 'd', count: 1 },
  };
  it.each([
    ['are one phase until five seconds after the last', '   -aaa 10s -', '            -b-- 4999ms f'],
    ['are one while less than five seconds apart', '        a 4s a 4s a 9s -', '      b 4s - 4s - 4999ms f'],
    ['are another phase after the end of one', '            a 6s d 9s -', '           b 4999ms e 1s c 4999ms g'],
    ['end the phase in progress when they complete', '      a--|', '                b--(e|)'],
    ['fail it when they fail', '                            a--#', '                b--#'],
  ])('%s', (_, refused, expected) => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const refused$ = cold(refused.trim());
      const ends = /[|#]/.test(refused);
      expectObservable(refusalPhases(refused$, scheduler), '^ 20s !').toBe(expected.trim(), PHASES);
      if (!ends) expectSubscriptions(refused$.subscriptions).toBe('^ 20s !');
    });
  });
});
