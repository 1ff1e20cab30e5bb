import { type Observable, map, of } from 'rxjs';
import { pipelineWindow } from '../../src/streams/pipeline-window';
import { marbles } from '../support/marbles';

type Send = (values: readonly string[]) => Observable<string>;
function joined(values: readonly string[]) {
  return values.join('');
}
/** A store that replies synchronously with the values it was sent. */
const immediate: Send = (values) => of(joined(values));

describe('a pipeline window', () => {
  it('opens with the first value, gathers for its span and closes; no value, no window', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  -ab-c------d-----');
      const expected = '     -----x---------y-';
      const subscribed = '   ^----------------';
      const sent$ = source.pipe(pipelineWindow({ span: 4, scheduler, windowsInFlight: 1 }, immediate));
      expectObservable(sent$).toBe(expected, { x: 'abc', y: 'd' });
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('continues to gather while the allowed number of windows is in flight, and closes when one of them is done', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-c---d------------');
      const store = cold('     ------(s|)');
      const expected = '     --------x-----y-----z-';
      const windows = ['     --^-----!', '     --------^-----!', '     --------------^-----!'];
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1 }, send));
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'bc', z: 'd' });
      expectSubscriptions(store.subscriptions).toBe(windows);
    });
  });

  it('sends a window while another is in flight when two are allowed', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-------------');
      const store = cold('     ------(s|)');
      const expected = '     --------x--y-----';
      const windows = ['     --^-----!', '     -----^-----!'];
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 2 }, send));
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'b' });
      expectSubscriptions(store.subscriptions).toBe(windows);
    });
  });

  it('closes without waiting for its span when the source completes, and completes when every window is done', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  -ab|');
      const store = cold('      --(s|)');
      const expected = '     -----(x|)';
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 9, scheduler, windowsInFlight: 1 }, send));
      expectObservable(sent$).toBe(expected, { x: 'ab' });
      expectSubscriptions(store.subscriptions).toBe('---^-!');
    });
  });

  it('waits for a window in flight before sending the last one after the source has completed', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b|');
      const store = cold('    -----(s|)');
      const expected = '     ------x----(y|)';
      const windows = ['     -^----!', '     ------^----!'];
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 1, scheduler, windowsInFlight: 1 }, send));
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'b' });
      expectSubscriptions(store.subscriptions).toBe(windows);
    });
  });

  it('completes with a source that has no values', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  ---|');
      const expected = '     ---|';
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1 }, immediate));
      expectObservable(sent$).toBe(expected);
    });
  });

  it('passes on an error of the source, drops the open window and unsubscribes from windows in flight', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b#');
      const store = cold('     -----s');
      const expected = '     -----#';
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 2 }, send));
      expectObservable(sent$).toBe(expected);
      expectSubscriptions(store.subscriptions).toBe('--^--!');
    });
  });

  it('passes on an error of a sent window, and unsubscribes from the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b---');
      const store = cold('     -#');
      const expected = '     ---#';
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1 }, () => store));
      expectObservable(sent$).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^--!');
    });
  });

  it('unsubscribes from the source and from windows in flight, and cancels its timer, when it is unsubscribed from', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b----');
      const store = cold('     ------s');
      const unsubscribe = '  -----!';
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 2 }, send));
      expectObservable(sent$, unsubscribe).toBe('');
      expectSubscriptions(source.subscriptions).toBe('^----!');
      expectSubscriptions(store.subscriptions).toBe('--^--!');
    });
  });

  it('sends a window by the overflow after its wait; the overflow does not count as in flight', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-c--------d-----------');
      const store = cold('     -----------(s|)');
      const overflowing = cold('            ----------(s|)');
      const expected = '     -------------x-----y-------z';
      const sent = ['     --^----------!', '     ----------------^----------!'];
      const overflow = { after: 4, send: (values: readonly string[]) => overflowing.pipe(map(() => joined(values))) };
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1, overflow }, send));
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'bc', z: 'd' });
      expectSubscriptions(store.subscriptions).toBe(sent);
      expectSubscriptions(overflowing.subscriptions).toBe('---------^---------!');
    });
  });

  it('does not use the overflow when a window in flight is done in time', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b----------');
      const store = cold('     -----(s|)');
      const expected = '     -------x----y-';
      const overflow = { after: 4, send: () => cold('#') };
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1, overflow }, send));
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('completes when the overflow is done too, and applies its wait also after the source has completed', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b|');
      const store = cold('    ----------(s|)');
      const overflowing = cold('          ------(s|)');
      const expected = '     -----------x-(y|)';
      const overflow = { after: 3, send: (values: readonly string[]) => overflowing.pipe(map(() => joined(values))) };
      const send: Send = (values) => store.pipe(map(() => joined(values)));
      const sent$ = source.pipe(pipelineWindow({ span: 1, scheduler, windowsInFlight: 1, overflow }, send));
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('cancels the wait for the overflow when it is unsubscribed from', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b---------');
      const store = cold('     ----------s');
      const overflowing = cold('       -');
      const unsubscribe = '  ------!';
      const overflow = { after: 4, send: () => overflowing };
      const send: Send = () => store;
      const sent$ = source.pipe(pipelineWindow({ span: 1, scheduler, windowsInFlight: 1, overflow }, send));
      expectObservable(sent$, unsubscribe).toBe('');
      expectSubscriptions(store.subscriptions).toBe('-^----!');
      expectSubscriptions(overflowing.subscriptions).toBe([]);
    });
  });
});
