import { awaited } from '../../src/streams/awaited';
import { marbles } from '../support/marbles';

const LISTS = { a: ['rules', 'counter store'], r: ['rules'], s: ['counter store'], n: [] };

describe('what the service waits for', () => {
  it.each([
    ['--1--1--', '----1--', 'a-s-(n|)'],
    ['----1---', '--1----', 'a-r-(n|)'],
    ['----1---', '-------', 'a---s---'],
    ['--------', '(1|)   ', '(ar)-----'],
    ['--#     ', '-------', 'a-#     '],
  ])('with rules %s and the store %s is %s', (rules, store, expected) => {
    marbles(({ cold, expectObservable }) => {
      const inputs = { rules: cold(rules.trim()), 'counter store': cold(store.trim()) };
      expectObservable(awaited(inputs)).toBe(expected.trim(), LISTS);
    });
  });

  it('is unsubscribed from with its inputs, each of which is needed once only', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const rules$ = cold('--1--1-');
      const store$ = cold('-------');
      expectObservable(awaited({ rules: rules$, 'counter store': store$ }), '^-----!').toBe('a-s----', LISTS);
      expectSubscriptions(rules$.subscriptions).toBe('^-!');
      expectSubscriptions(store$.subscriptions).toBe('^-----!');
    });
  });
});
