import { type Observable, of } from 'rxjs';
import { type ScanResult, confirmChange } from '../../../src/sources/rule-files/confirm-change';
import { marbles } from '../../support/marbles';

const TIMING = { recheckDelay: 5, maxWait: 22 };

const good: ScanResult = { key: 'good', mayBeIncomplete: false };
const empty: ScanResult = { key: 'empty', mayBeIncomplete: true };
const half: ScanResult = { key: 'half', mayBeIncomplete: true };
const values = { g: good, e: empty, h: half };

/** Looks that find these, one after the other; the last again and again. */
function looks(...found: readonly ScanResult[]): () => Observable<ScanResult> {
  const remaining = [...found];
  return () => of((remaining.length > 1 ? remaining.shift() : remaining[0]) ?? good);
}

describe('what a look at rule files finds', () => {
  it('is believed at once when there is no doubt', () =>
    marbles(({ expectObservable }) => {
      expectObservable(confirmChange(looks(good), TIMING)).toBe('(g|)', values);
    }));

  it('is believed when it is still there after the hold, where there was doubt', () =>
    marbles(({ expectObservable }) => {
      expectObservable(confirmChange(looks(empty, empty), TIMING)).toBe('-----(e|)', values);
    }));

  it('is not believed when something else is there after the hold', () =>
    marbles(({ expectObservable }) => {
      expectObservable(confirmChange(looks(empty, good), TIMING)).toBe('     -----(g|)', values);
      expectObservable(confirmChange(looks(empty, half, half), TIMING)).toBe('----------(h|)', values);
      expectObservable(confirmChange(looks(empty, half, good), TIMING)).toBe('----------(g|)', values);
    }));

  it('is believed in the end when it never stays the same', () =>
    marbles(({ expectObservable }) => {
      const everChanging = looks(empty, half, empty, half, empty, half, empty, half);

      expectObservable(confirmChange(everChanging, TIMING)).toBe('-------------------------(h|)', values);
    }));

  it('counts the hold from the end of a look', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const look = cold('  ---(e|)         ', values);
      const expected = '   -----------(e|) ';

      expectObservable(confirmChange(() => look, TIMING)).toBe(expected, values);
      expectSubscriptions(look.subscriptions).toBe(['^--!', '--------^--!']);
    }));

  it('is nothing when the look finds nothing', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(confirmChange(() => cold<ScanResult>('--|'), TIMING)).toBe('--|');
    }));

  it('is not looked for any more when nobody waits for it', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const look = cold(' ---(e|)', values);

      expectObservable(
        confirmChange(() => look, TIMING),
        '^-----!',
      ).toBe('-');
      expectSubscriptions(look.subscriptions).toBe('        ^--!');
    }));
});
