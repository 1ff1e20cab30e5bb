import { type ReportableScan, reportChanges } from '../../../src/sources/rule-files/report-changes';
import type { RuleEvent } from '../../../src/streams/ports/rule-source';
import { rulesetOf } from '../../../test/support/data/rules';
import { marbles } from '../../support/marbles';

const loaded: RuleEvent = {
  kind: 'loaded',
  ruleset: rulesetOf('shop'),
  origin: { source: 'files', version: '1' },
  warnings: [],
};
const rejected: RuleEvent = { kind: 'rejected', reason: 'shop.yaml:1:1: bad' };

const scans: Record<string, ReportableScan> = {
  a: { key: 'good', state: '1', event: loaded },
  b: { key: 'good', state: '2', event: loaded },
  x: { key: 'bad', state: '2', event: rejected },
  y: { key: 'bad', state: '3', event: rejected },
};
const events: Record<string, RuleEvent> = {
  g: loaded,
  G: { ...loaded, isRepeated: true },
  r: rejected,
  R: { ...rejected, isRepeated: true },
};

describe('reportChanges', () => {
  it('emits nothing for a scan that found the same in the same state', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-a-a-|', scans);
      const expected = '     -g-----|';
      const subscribed = '   ^------!';

      expectObservable(source.pipe(reportChanges())).toBe(expected, events);
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    }));

  it('repeats the event when only the state is another, for loaded and for rejected rules', () =>
    marbles(({ cold, expectObservable }) => {
      const source = cold('  a-b-b-a-x-x-y-b', scans);
      const expected = '     g-G---G-r---R-g';

      expectObservable(source.pipe(reportChanges())).toBe(expected, events);
    }));

  it('starts again for each subscriber, fails with its source, and unsubscribes from it', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const changes$ = cold('ab#', scans).pipe(reportChanges());
      expectObservable(changes$).toBe('gG#', events);
      expectObservable(changes$).toBe('gG#', events);

      const source = cold('  a--b', scans);
      const unsubscribe = '  --!';
      expectObservable(source.pipe(reportChanges()), unsubscribe).toBe('g', events);
      expectSubscriptions(source.subscriptions).toBe('^-!');
    }));
});
