import { type Observable, map, of } from 'rxjs';
import { pipelineWindow } from '../../src/streams/pipeline-window';
import { marbles } from '../support/marbles';

type Ship = (values: readonly string[]) => Observable<string>;
function joined(values: readonly string[]) {
  return values.join('');
}
/** A store that answers at once with what it was sent. */
const atOnce: Ship = (values) => of(joined(values));

describe('a pipeline window', () => {
  it('opens with the first value, gathers for its span, and closes; silence opens none', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  -ab-c------d-----');
      const expected = '     -----x---------y-';
      const subscribed = '   ^----------------';
      const shipped$ = source.pipe(pipelineWindow({ span: 4, scheduler, windowsInFlight: 1 }, atOnce));
      expectObservable(shipped$).toBe(expected, { x: 'abc', y: 'd' });
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('keeps gathering while as many windows are under way as may be, and closes when one is done', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-c---d------------');
      const store = cold('     ------(s|)');
      const expected = '     --------x-----y-----z-';
      const windows = ['     --^-----!', '     --------^-----!', '     --------------^-----!'];
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1 }, ship));
      expectObservable(shipped$).toBe(expected, { x: 'a', y: 'bc', z: 'd' });
      expectSubscriptions(store.subscriptions).toBe(windows);
    });
  });

  it('has several windows under way when it may', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-------------');
      const store = cold('     ------(s|)');
      const expected = '     --------x--y-----';
      const windows = ['     --^-----!', '     -----^-----!'];
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 2 }, ship));
      expectObservable(shipped$).toBe(expected, { x: 'a', y: 'b' });
      expectSubscriptions(store.subscriptions).toBe(windows);
    });
  });

  it('ships at once what it has gathered when the source completes, and completes when all is answered', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  -ab|');
      const store = cold('      --(s|)');
      const expected = '     -----(x|)';
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 9, scheduler, windowsInFlight: 1 }, ship));
      expectObservable(shipped$).toBe(expected, { x: 'ab' });
      expectSubscriptions(store.subscriptions).toBe('---^-!');
    });
  });

  it('waits, after the source has completed, for a free place for what is left', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b|');
      const store = cold('    -----(s|)');
      const expected = '     ------x----(y|)';
      const windows = ['     -^----!', '     ------^----!'];
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 1, scheduler, windowsInFlight: 1 }, ship));
      expectObservable(shipped$).toBe(expected, { x: 'a', y: 'b' });
      expectSubscriptions(store.subscriptions).toBe(windows);
    });
  });

  it('completes with a source that has no values', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  ---|');
      const expected = '     ---|';
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1 }, atOnce));
      expectObservable(shipped$).toBe(expected);
    });
  });

  it('passes an error of the source on, dropping what was gathered and letting go of what is under way', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b#');
      const store = cold('     -----s');
      const expected = '     -----#';
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 2 }, ship));
      expectObservable(shipped$).toBe(expected);
      expectSubscriptions(store.subscriptions).toBe('--^--!');
    });
  });

  it('passes an error of a window on, and ends there', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b---');
      const store = cold('     -#');
      const expected = '     ---#';
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1 }, () => store));
      expectObservable(shipped$).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe('^--!');
    });
  });

  it('lets go of the source, of its timer and of what is under way when nobody listens', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b----');
      const store = cold('     ------s');
      const unsubscribe = '  -----!';
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 2 }, ship));
      expectObservable(shipped$, unsubscribe).toBe('');
      expectSubscriptions(source.subscriptions).toBe('^----!');
      expectSubscriptions(store.subscriptions).toBe('--^--!');
    });
  });

  it('hands a window that has waited long for a place to the overflow, which takes no place', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-c--------d-----------');
      const store = cold('     -----------(s|)');
      const beside = cold('            ----------(s|)');
      const expected = '     -------------x-----y-------z';
      const shipped = ['     --^----------!', '     ----------------^----------!'];
      const overflow = { after: 4, ship: (values: readonly string[]) => beside.pipe(map(() => joined(values))) };
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1, overflow }, ship));
      expectObservable(shipped$).toBe(expected, { x: 'a', y: 'bc', z: 'd' });
      expectSubscriptions(store.subscriptions).toBe(shipped);
      expectSubscriptions(beside.subscriptions).toBe('---------^---------!');
    });
  });

  it('hands nothing to the overflow when a place comes free in time', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b----------');
      const store = cold('     -----(s|)');
      const expected = '     -------x----y-';
      const overflow = { after: 4, ship: () => cold('#') };
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 2, scheduler, windowsInFlight: 1, overflow }, ship));
      expectObservable(shipped$).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('completes when what overflowed is answered too, and waits for a place no longer than before', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b|');
      const store = cold('    ----------(s|)');
      const beside = cold('          ------(s|)');
      const expected = '     -----------x-(y|)';
      const overflow = { after: 3, ship: (values: readonly string[]) => beside.pipe(map(() => joined(values))) };
      const ship: Ship = (values) => store.pipe(map(() => joined(values)));
      const shipped$ = source.pipe(pipelineWindow({ span: 1, scheduler, windowsInFlight: 1, overflow }, ship));
      expectObservable(shipped$).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('forgets the wait for the overflow when nobody listens', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b---------');
      const store = cold('     ----------s');
      const beside = cold('       -');
      const unsubscribe = '  ------!';
      const overflow = { after: 4, ship: () => beside };
      const ship: Ship = () => store;
      const shipped$ = source.pipe(pipelineWindow({ span: 1, scheduler, windowsInFlight: 1, overflow }, ship));
      expectObservable(shipped$, unsubscribe).toBe('');
      expectSubscriptions(store.subscriptions).toBe('-^----!');
      expectSubscriptions(beside.subscriptions).toBe([]);
    });
  });
});
