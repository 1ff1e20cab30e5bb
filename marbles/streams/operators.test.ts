import { defer, of } from 'rxjs';
import type { LogFields } from '../../src/log/log';
import { ConditionLog, PassingConditions } from '../../src/log/condition-log';
import { exhaustMapWithTrailing } from '../../src/streams/exhaust-map-with-trailing';
import { flushing, lastFlush } from '../../src/streams/flushing';
import { latest } from '../../src/streams/latest';
import { RecordedLog } from '../../test/support/data/recorded-log';
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
      const source = cold('  --a----b--#');
      const values$ = latest(source, 'none');
      const read: string[] = [];
      for (const frame of [1, 4, 9]) scheduler.schedule(() => read.push(values$.value), frame);
      expectObservable(values$, '^--------!').toBe('    --a----b-');
      expectObservable(values$, '----^----!').toBe('    ----a--b-');
      expectObservable(values$, '--------^!').toBe('    --------b');
      flush();
      expectSubscriptions(source.subscriptions).toBe('^--------!');
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

describe('PassingConditions', () => {
  it.each([
    ['end five seconds after the last event', '-aaa', ['1 a begins', '5003 a ends 3']],
    ['last while events are less than 5 s apart', '-a 4s a 4s a', ['1 a begins', '13003 a ends 3']],
    ['begin again after their end', '-a 6s a', ['1 a begins', '5001 a ends 1', '6002 a begins', '11002 a ends 1']],
    ['are logged apart', '-aab-ba', ['1 a begins', '3 b begins', '5005 b ends 2', '5006 a ends 3']],
  ])('%s', (_, events, expected) => {
    marbles(({ hot, flush }, scheduler) => {
      const lines: string[] = [];
      function write(message: string, fields: LogFields = {}) {
        lines.push([scheduler.now(), message, ...Object.values(fields)].join(' '));
      }
      const conditions = new PassingConditions();
      conditions.logTo(Object.assign(new RecordedLog(), { warn: write, notice: write }), scheduler).subscribe();
      hot(events).subscribe((condition) =>
        conditions.occurred({
          condition,
          begins: `${condition} begins`,
          beginFields: {},
          ends: `${condition} ends`,
          endFields: (count) => ({ count }),
        }),
      );
      flush();
      expect(lines).toEqual(expected);
    });
  });
});

describe('ConditionLog', () => {
  function recorded(act: (condition: ConditionLog, wait: (milliseconds: number) => void) => void): readonly string[] {
    const log = new RecordedLog();
    let time = 0;
    const lines = { begins: 'begins', ends: 'ends', quiet: { milliseconds: 1000, now: () => time } };
    act(new ConditionLog(log, lines), (milliseconds) => (time += milliseconds));
    return log.text.split('\n').map((line) => line.trim());
  }

  it('has a line when the condition begins and one when it has ended', () => {
    const lines = recorded((condition, wait) => {
      condition.ended();
      condition.occurred();
      condition.occurred();
      wait(1000);
      condition.ended({ count: 2 });
      condition.ended();
      condition.occurred();
    });
    expect(lines).toEqual(['begins', 'ends 2', 'begins']);
  });

  it('has a line for each different reason, up to eight while the condition lasts', () => {
    const lines = recorded((condition, wait) => {
      for (const reason of 'aabcdefghij') condition.because(reason);
      wait(999);
      condition.ended();
      condition.because('k');
      wait(1000);
      condition.ended();
      condition.because('a');
    });
    expect(lines).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((reason) => `begins ${reason}`).concat('ends', 'begins a'),
    );
  });
});
