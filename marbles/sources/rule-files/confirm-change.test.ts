import { type Observable, of } from 'rxjs';
import { type Believable, confirmChange } from '../../../src/sources/rule-files/confirm-change';
import { marbles } from '../../support/marbles';

const DOUBT = { hold: 5, longest: 22 };

const good: Believable = { key: 'good', isDoubtful: false };
const empty: Believable = { key: 'empty', isDoubtful: true };
const half: Believable = { key: 'half', isDoubtful: true };
const values = { g: good, e: empty, h: half };

/** Looks that find these, one after the other; the last again and again. */
function looks(...found: readonly Believable[]): () => Observable<Believable> {
  let next = 0;
  return () => of(found[Math.min(next++, found.length - 1)] ?? good);
}

describe('what a look at rule files finds', () => {
  it('is believed at once when there is no doubt', () =>
    marbles(({ expectObservable }) => {
      expectObservable(confirmChange(looks(good), DOUBT)).toBe('(g|)', values);
    }));

  it('is believed when it is still there after the hold, where there was doubt', () =>
    marbles(({ expectObservable }) => {
      expectObservable(confirmChange(looks(empty, empty), DOUBT)).toBe('-----(e|)', values);
    }));

  it('is not believed when something else is there after the hold', () =>
    marbles(({ expectObservable }) => {
      expectObservable(confirmChange(looks(empty, good), DOUBT)).toBe('     -----(g|)', values);
      expectObservable(confirmChange(looks(empty, half, half), DOUBT)).toBe('----------(h|)', values);
      expectObservable(confirmChange(looks(empty, half, good), DOUBT)).toBe('----------(g|)', values);
    }));

  it('is believed in the end when it never stays the same', () =>
    marbles(({ expectObservable }) => {
      const everChanging = looks(empty, half, empty, half, empty, half, empty, half);

      expectObservable(confirmChange(everChanging, DOUBT)).toBe('-------------------------(h|)', values);
    }));

  it('counts the hold from the end of a look', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const look = cold('  ---(e|)         ', values);
      const expected = '   -----------(e|) ';

      expectObservable(confirmChange(() => look, DOUBT)).toBe(expected, values);
      expectSubscriptions(look.subscriptions).toBe(['^--!', '--------^--!']);
    }));

  it('is nothing when the look finds nothing', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(confirmChange(() => cold<Believable>('--|'), DOUBT)).toBe('--|');
    }));

  it('is not looked for any more when nobody waits for it', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const look = cold(' ---(e|)', values);

      expectObservable(
        confirmChange(() => look, DOUBT),
        '^-----!',
      ).toBe('-');
      expectSubscriptions(look.subscriptions).toBe('        ^--!');
    }));
});
