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

/** `w` shows that the attempt works, an error `!` that it failed whatever came before. */
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

describe('a stream that ends', () => {
  it('in failure, again and again: the waits grow up to the longest and stay there', () => {
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

  it('after it worked is opened again after the retry interval, and failures are counted from the start', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const failing = cold('a#');
      const working = cold('w#');
      const attempts = [failing, failing, working, failing, failing];
      // the waits:             4    8        2  4
      const expected = '    a----a--------w--a----a--';
      const until = '       ------------------------!';
      expectObservable(
        reconnecting(scheduler)((number) => attempts[number] ?? failing),
        until,
      ).toBe(expected);
    });
  });

  it('in order counts as a failure while nothing shows that it worked, and as none after', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const silent = cold('|');
      const working = cold('w|');
      const attempts = [silent, silent, working, working];
      const expected = '    ------------w--w--';
      const until = '       -----------------!';
      expectObservable(
        reconnecting(scheduler)((number) => attempts[number] ?? silent),
        until,
      ).toBe(expected);
    });
  });

  it('in a failure that comes again at once counts as one even after it worked', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const poisoned = cold('w#', undefined, '!');
      const expected = '    w----w--------w';
      const until = '       ---------------!';
      expectObservable(
        reconnecting(scheduler)(() => poisoned),
        until,
      ).toBe(expected);
    });
  });

  it('while nobody listens any more is not opened again, neither when it is open nor in a wait', () => {
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

describe('the wait', () => {
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

  it('grows by one and the factor, by default from 10 s to 60 s', () => {
    expect(waits({})).toEqual([3000, 10_000, 15_000, 22_500, 33_750, 50_625, 60_000, 60_000]);
  });

  it('grows by the factor itself where that is above 1, and not at all by a factor of 0', () => {
    expect(waits({ randomFactor: 3 })).toEqual([3000, 10_000, 30_000, 60_000, 60_000, 60_000, 60_000, 60_000]);
    expect(waits({ randomFactor: 1 })).toEqual([3000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000, 60_000]);
    expect(waits({ randomFactor: 0 })).toEqual([3000, ...Array.from({ length: 7 }, () => 10_000)]);
  });

  it('is the longest at once where the first is longer', () => {
    expect(waits({ maxInterval: 5000 })).toEqual([3000, ...Array.from({ length: 7 }, () => 5000)]);
    expect(waits({ maxInterval: 5000, jitter: true }, () => 0.3)).toEqual([
      3000,
      ...Array.from({ length: 7 }, () => 5000),
    ]);
  });

  it('lies with jitter evenly between the first and the one worked out', () => {
    expect(waits({ jitter: true }, () => 0)).toEqual([3000, ...Array.from({ length: 7 }, () => 10_000)]);
    expect(waits({ jitter: true }, () => 1)).toEqual(waits({}));
    expect(waits({ jitter: true }, () => 0.5)).toEqual([
      3000, 10_000, 12_500, 16_250, 21_875, 30_312.5, 35_000, 35_000,
    ]);
  });

  it('stays at the longest after any number of failures', () => {
    expect(waitAfter(100_000, DOCUMENTED, () => 1)).toBe(60_000);
    expect(waitAfter(100_000, { ...DOCUMENTED, jitter: true }, () => 1)).toBe(60_000);
  });
});
