import { type BackoffOptions, waitAfter } from '../../../../src/sources/xds/stream/backoff';
import { type AttemptEnd, reconnect } from '../../../../src/sources/xds/stream/reconnect';
import { type Observable, type SchedulerLike, defer } from 'rxjs';
import { marbles } from '../../../support/marbles';

const BACKOFF: BackoffOptions = {
  retryInterval: 2,
  initialInterval: 4,
  maxInterval: 20,
  randomFactor: 1,
  jitter: false,
};

/** `w` shows that the attempt works; the error `!` means that it failed even though it worked before. */
function reconnecting(scheduler: SchedulerLike, ends: AttemptEnd[] = [], backoff = BACKOFF) {
  return (attempt: (number: number) => Observable<string>) => {
    let started = 0;
    return defer(() => {
      started += 1;
      return attempt(started - 1);
    }).pipe(
      reconnect({
        backoff,
        works: (value) => value === 'w',
        fails: (error) => error === '!',
        onEnd: (end) => ends.push(end),
        random: () => 0.5,
        scheduler,
      }),
    );
  };
}

describe('reconnect', () => {
  it('waits longer after each consecutive failure, up to the maximum', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const ends: AttemptEnd[] = [];
      const attempt = cold('#');
      const until = '         100ms !';
      expectObservable(
        reconnecting(scheduler, ends)(() => attempt),
        until,
      ).toBe('-');
      expectSubscriptions(attempt.subscriptions).toBe([
        '(^!)',
        '4ms  (^!)',
        '12ms (^!)',
        '28ms (^!)',
        '48ms (^!)',
        '68ms (^!)',
        '88ms (^!)',
      ]);
      scheduler.flush();
      expect(ends.map(({ failures, wait }) => [failures, wait])).toEqual([
        [1, 4],
        [2, 8],
        [3, 16],
        [4, 20],
        [5, 20],
        [6, 20],
        [7, 20],
      ]);
    });
  });

  it('waits for the retry interval after an attempt that worked, and counts failures from 1 again', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const failing = cold('a#');
      const working = cold('w#');
      const attempts = [failing, failing, working, failing, failing];
      // The waits:            4    8        2  4
      const expected = '    a----a--------w--a----a--';
      const until = '       ------------------------!';
      expectObservable(
        reconnecting(scheduler)((number) => attempts[number] ?? failing),
        until,
      ).toBe(expected);
      expectSubscriptions(working.subscriptions).toBe('--------------^!');
      expectSubscriptions(failing.subscriptions).toBe([
        '^!',
        '-----^!',
        '-----------------^!',
        '----------------------^!',
      ]);
    });
  });

  it('counts a completion as a failure unless the attempt worked', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const silent = cold('|');
      const working = cold('w|');
      const attempts = [silent, silent, working, working];
      const expected = '    ------------w--w--';
      const until = '       -----------------!';
      expectObservable(
        reconnecting(scheduler)((number) => attempts[number] ?? silent),
        until,
      ).toBe(expected);
      expectSubscriptions(silent.subscriptions).toBe(['(^!)', '----(^!)']);
      expectSubscriptions(working.subscriptions).toBe(['------------^!', '---------------^!']);
    });
  });

  it('counts an error that would repeat immediately as a failure even after the attempt worked', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const poisoned = cold('w#', undefined, '!');
      const expected = '    w----w--------w';
      const until = '       ---------------!';
      expectObservable(
        reconnecting(scheduler)(() => poisoned),
        until,
      ).toBe(expected);
      expectSubscriptions(poisoned.subscriptions).toBe(['^!', '-----^!', '--------------^!']);
    });
  });

  it('starts no attempt after unsubscribing, neither during an attempt nor during a wait', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const open = cold('w');
      expectObservable(
        reconnecting(scheduler)(() => open),
        '--!',
      ).toBe('w');
      expectSubscriptions(open.subscriptions).toBe('         ^-!');
      const failing = cold('#');
      expectObservable(
        reconnecting(scheduler)(() => failing),
        '--!',
      ).toBe('-');
      expectSubscriptions(failing.subscriptions).toBe('      (^!)');
    });
  });
});

describe('waitAfter', () => {
  const DOCUMENTED: BackoffOptions = {
    retryInterval: 3000,
    initialInterval: 10_000,
    maxInterval: 60_000,
    randomFactor: 0.5,
    jitter: false,
  };
  function waits(backoff: Partial<BackoffOptions>, random = () => 0) {
    return [0, 1, 2, 3, 4, 5, 6, 7].map((failures) => waitAfter(failures, { ...DOCUMENTED, ...backoff }, random));
  }

  it('multiplies the wait by 1 + the factor, by default from 10 s to 60 s', () => {
    expect(waits({})).toEqual([3000, 10_000, 15_000, 22_500, 33_750, 50_625, 60_000, 60_000]);
  });

  it('multiplies the wait by the factor itself when that is above 1, and keeps it with a factor of 0', () => {
    expect(waits({ randomFactor: 3 })).toEqual([3000, 10_000, 30_000, 60_000, 60_000, 60_000, 60_000, 60_000]);
    expect(waits({ randomFactor: 1 })).toEqual([3000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000, 60_000]);
    expect(waits({ randomFactor: 0 })).toEqual([3000, ...Array.from({ length: 7 }, () => 10_000)]);
  });

  it('returns the maximum when the initial interval is longer', () => {
    expect(waits({ maxInterval: 5000 })).toEqual([3000, ...Array.from({ length: 7 }, () => 5000)]);
    expect(waits({ maxInterval: 5000, jitter: true }, () => 0.3)).toEqual([
      3000,
      ...Array.from({ length: 7 }, () => 5000),
    ]);
  });

  it('returns with jitter a uniformly random wait between the initial and the calculated one', () => {
    expect(waits({ jitter: true }, () => 0)).toEqual([3000, ...Array.from({ length: 7 }, () => 10_000)]);
    expect(waits({ jitter: true }, () => 1)).toEqual(waits({}));
    expect(waits({ jitter: true }, () => 0.5)).toEqual([
      3000, 10_000, 12_500, 16_250, 21_875, 30_312.5, 35_000, 35_000,
    ]);
  });

  it('returns the maximum after any number of failures', () => {
    expect(waitAfter(100_000, DOCUMENTED, () => 1)).toBe(60_000);
    expect(waitAfter(100_000, { ...DOCUMENTED, jitter: true }, () => 1)).toBe(60_000);
  });
});
