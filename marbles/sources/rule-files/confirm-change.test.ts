import { type Observable, defer } from 'rxjs';
import { type ScanResult, confirmChange } from '../../../src/sources/rule-files/confirm-change';
import { marbles } from '../../support/marbles';

const TIMING = { recheckDelay: 5, maxWait: 22 };

const complete: ScanResult = { key: 'complete', mayBeIncomplete: false };
const empty: ScanResult = { key: 'empty', mayBeIncomplete: true };
const half: ScanResult = { key: 'half', mayBeIncomplete: true };
const values = { c: complete, e: empty, h: half };

/** Scans with these results, one after the other; the last one is repeated. */
function inTurn(...scans: readonly Observable<ScanResult>[]): () => Observable<ScanResult> {
  const remaining = [...scans];
  return () =>
    defer(() => {
      const [next] = remaining.length > 1 ? remaining.splice(0, 1) : remaining;
      if (next === undefined) throw new Error('no scan');
      return next;
    });
}

describe('confirmChange', () => {
  it('emits a complete result immediately', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const scan = cold('  (c|)', values);
      const subscribed = ' (^!)';
      const expected = '   (c|)';

      expectObservable(confirmChange(() => scan, TIMING)).toBe(expected, values);
      expectSubscriptions(scan.subscriptions).toBe(subscribed);
    }));

  it('emits a result that may be incomplete when the next scan finds the same', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const scan = cold('   (e|)', values);
      const subscribed = [' (^!)', '-----(^!)'];
      const expected = '    -----(e|)';

      expectObservable(confirmChange(() => scan, TIMING)).toBe(expected, values);
      expectSubscriptions(scan.subscriptions).toBe(subscribed);
    }));

  it('drops a result that may be incomplete when the next scan finds something else', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [e, c, h] = [cold('(e|)', values), cold('(c|)', values), cold('(h|)', values)];

      expectObservable(confirmChange(inTurn(e, c), TIMING)).toBe('   -----(c|)', values);
      expectObservable(confirmChange(inTurn(e, h), TIMING)).toBe('   ----------(h|)', values);
      expectObservable(confirmChange(inTurn(e, h, c), TIMING)).toBe('----------(c|)', values);
      expectSubscriptions(e.subscriptions).toBe(['(^!)', '(^!)', '(^!)']);
      expectSubscriptions(h.subscriptions).toBe(['-----(^!)', '-----(^!)', '----------(^!)']);
      expectSubscriptions(c.subscriptions).toBe(['-----(^!)', '----------(^!)']);
    }));

  it('emits the latest result after the maximum wait when it keeps changing', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const [e, h] = [cold('(e|)', values), cold('(h|)', values)];

      expectObservable(confirmChange(inTurn(e, h, e, h, e, h, e, h), TIMING)).toBe(
        '                                    -------------------------(h|)',
        values,
      );
      expectSubscriptions(e.subscriptions).toBe(['(^!)', '     10ms (^!)', '20ms (^!)']);
      expectSubscriptions(h.subscriptions).toBe(['5ms (^!)', ' 15ms (^!)', '25ms (^!)']);
    }));

  it('starts the recheck delay at the end of a scan', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const scan = cold('  ---(e|)         ', values);
      const expected = '   -----------(e|) ';

      expectObservable(confirmChange(() => scan, TIMING)).toBe(expected, values);
      expectSubscriptions(scan.subscriptions).toBe(['^--!', '--------^--!']);
    }));

  it('completes without a value when a scan does', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const scan = cold<ScanResult>('--|');
      const subscribed = '           ^-!';
      const expected = '             --|';

      expectObservable(confirmChange(() => scan, TIMING)).toBe(expected);
      expectSubscriptions(scan.subscriptions).toBe(subscribed);
    }));

  it('cancels the scan and the delay on unsubscribing', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const scan = cold(' ---(e|)', values);

      expectObservable(
        confirmChange(() => scan, TIMING),
        '^-----!',
      ).toBe('-');
      expectSubscriptions(scan.subscriptions).toBe('        ^--!');
    }));
});
