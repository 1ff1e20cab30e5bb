import { recordTerminationSignals } from '../../src/sources/recorded-signals';
import { terminationSignals } from '../../src/sources/signals';

const TERMINATION = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'] as const;

let exit: jest.SpyInstance;
beforeEach(() => {
  jest.useFakeTimers();
  exit = jest.spyOn(process, 'exit').mockImplementation(() => undefined as never);
});
afterEach(() => {
  for (const signal of TERMINATION) process.removeAllListeners(signal);
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** Lets signals arrive, each a number of milliseconds after the start. */
function receive(signals: readonly (readonly [NodeJS.Signals, number])[]): void {
  let now = 0;
  for (const [signal, at] of signals) {
    jest.advanceTimersByTime(at - now);
    now = at;
    process.emit(signal);
  }
}

describe('the termination signals', () => {
  it.each([
    ['of one kind', 'SIGTERM'],
    ['of another kind', 'SIGINT'],
  ] as const)('are the same one within a second of the first, %s', (_, other) => {
    const seen: string[] = [];
    const subscription = terminationSignals().subscribe((signal) => seen.push(signal));
    receive([
      ['SIGTERM', 0],
      [other, 0],
      [other, 400],
      [other, 1000],
    ]);
    expect(seen).toEqual(['SIGTERM']);
    // Counted from the first, not from the last.
    receive([[other, 1]]);
    expect(seen).toEqual(['SIGTERM', other]);
    subscription.unsubscribe();
  });

  it('that were recorded before are the first one, with their time', () => {
    recordTerminationSignals();
    receive([
      ['SIGINT', 0],
      ['SIGTERM', 600],
    ]);
    const seen: string[] = [];
    const subscription = terminationSignals().subscribe((signal) => seen.push(signal));
    receive([
      ['SIGTERM', 400],
      ['SIGHUP', 401],
    ]);
    expect(seen).toEqual(['SIGINT', 'SIGHUP']);
    expect(exit).not.toHaveBeenCalled();
    subscription.unsubscribe();
  });

  it('end a program that is being put together with 1 if there is another one', () => {
    recordTerminationSignals();
    receive([
      ['SIGTERM', 0],
      ['SIGTERM', 1000],
    ]);
    expect(exit).not.toHaveBeenCalled();
    receive([['SIGTERM', 1]]);
    expect(exit).toHaveBeenCalledWith(1);
  });
});
