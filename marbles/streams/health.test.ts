import { health } from '../../src/streams/health';
import { marbles } from '../support/marbles';

const state = { t: true, f: false };
const healthy = { healthy: true, unhealthy: [] };
function without(...unhealthy: string[]) {
  return { healthy: false, unhealthy };
}

describe('the health of several components', () => {
  it('is good only while every component is healthy, and names those that are not', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const store = cold('        t--f-----t---', state);
      const configuration = cold('f-----t---f-t', state);
      const expected = '          0--1--2--34-3';
      expectObservable(health({ store, configuration })).toBe(expected, {
        0: without('configuration'),
        1: without('store', 'configuration'),
        2: without('store'),
        3: healthy,
        4: without('configuration'),
      });
      expectSubscriptions(store.subscriptions).toBe('        ^------------');
      expectSubscriptions(configuration.subscriptions).toBe('^------------');
    });
  });

  it('is not emitted before every component has reported its state', () => {
    marbles(({ cold, expectObservable }) => {
      const store = cold('        t-----', state);
      const configuration = cold('---t--', state);
      const expected = '          ---0--';
      expectObservable(health({ store, configuration })).toBe(expected, { 0: healthy });
    });
  });

  it('is emitted once per change, however often a component reports the same state', () => {
    marbles(({ cold, expectObservable }) => {
      const store = cold('        t-t-f-f-t', state);
      const configuration = cold('t-----t--', state);
      const expected = '          0---1---0';
      expectObservable(health({ store, configuration })).toBe(expected, { 0: healthy, 1: without('store') });
    });
  });

  it('stays bad after a termination', () => {
    marbles(({ cold, expectObservable }) => {
      const store = cold('        t--------', state);
      const termination = cold('  t---(f|) ', state);
      const expected = '          0---1----';
      expectObservable(health({ store, termination })).toBe(expected, { 0: healthy, 1: without('termination') });
    });
  });

  it('unsubscribes from every component when it is unsubscribed from', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const store = cold('        t-f-t', state);
      const unsubscribe = '       -!';
      expectObservable(health({ store }), unsubscribe).toBe('0', { 0: healthy });
      expectSubscriptions(store.subscriptions).toBe('^!');
    });
  });
});
