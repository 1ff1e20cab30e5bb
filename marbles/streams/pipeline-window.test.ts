import { type Observable, map, mergeMap, tap } from 'rxjs';
import { type ClosedWindow, type PipelineWindowOptions, pipelineWindow } from '../../src/streams/pipeline-window';
import { marbles } from '../support/marbles';

interface Options extends Omit<PipelineWindowOptions, 'windowsInFlight'> {
  readonly windowsInFlight?: number;
  /** Replies to windows beyond the bound. */
  readonly overflowing?: Observable<string>;
}

/**
 * The windows of a source, sent to a store one at a time, which replies with the values it was sent when its stream
 * emits.
 */
function windowed(source: Observable<string>, store: Observable<string>, options: Options): Observable<string> {
  const { overflowing = store, ...more } = options;
  return source.pipe(
    pipelineWindow({ windowsInFlight: 1, ...more }),
    mergeMap((window) =>
      (window.isOverflow ? overflowing : store).pipe(
        map(() => window.values.join('')),
        tap({ complete: () => window.end() }),
      ),
    ),
  );
}

describe('a pipeline window', () => {
  it('opens with the first value, gathers for its span and closes; no value, no window', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  -ab-c------d-----');
      const expected = '     -----x---------y-';
      expectObservable(windowed(source, cold('(s|)'), { span: 4, scheduler })).toBe(expected, { x: 'abc', y: 'd' });
      expectObservable(windowed(cold('---|'), cold('(s|)'), { span: 2, scheduler })).toBe('---|');
      expectSubscriptions(source.subscriptions).toBe('^----------------');
    });
  });

  it('continues to gather while the allowed number of windows is in flight, and closes when one of them is done', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-c---d------------');
      const store = cold('     ------(s|)');
      const expected = '     --------x-----y-----z-';
      const windows = ['     --^-----!', '     --------^-----!', '     --------------^-----!'];
      expectObservable(windowed(source, store, { span: 2, scheduler })).toBe(expected, { x: 'a', y: 'bc', z: 'd' });
      expectSubscriptions(store.subscriptions).toBe(windows);
    });
  });

  it('sends a window while another is in flight when two are allowed', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-------------');
      const store = cold('     ------(s|)');
      const expected = '     --------x--y-----';
      const sent$ = windowed(source, store, { span: 2, scheduler, windowsInFlight: 2 });
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'b' });
      expectSubscriptions(store.subscriptions).toBe(['--^-----!', '-----^-----!']);
    });
  });

  it('closes when the source completes, also while a window is in flight, and completes when every window is done', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b|');
      const store = cold('    -----(s|)');
      const expected = '     ------x--(y|)';
      expectObservable(windowed(source, store, { span: 1, scheduler })).toBe(expected, { x: 'a', y: 'b' });
      expectSubscriptions(store.subscriptions).toBe(['-^----!', '----^----!']);
      const [ends, quick] = [cold('-ab|'), cold('--(s|)')];
      expectObservable(windowed(ends, quick, { span: 9, scheduler })).toBe('-----(x|)', { x: 'ab' });
    });
  });

  it('passes on an error of the source, drops the open window and unsubscribes from windows in flight', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b#');
      const store = cold('     -----s');
      const expected = '     -----#';
      expectObservable(windowed(source, store, { span: 2, scheduler, windowsInFlight: 2 })).toBe(expected);
      expectSubscriptions(store.subscriptions).toBe('--^--!');
    });
  });

  it('passes on an error of a sent window, and unsubscribes from the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b---');
      expectObservable(windowed(source, cold('-#'), { span: 2, scheduler })).toBe('---#');
      expectSubscriptions(source.subscriptions).toBe('^--!');
    });
  });

  it('unsubscribes from the source and from windows in flight, and cancels its timer, when it is unsubscribed from', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a---b----');
      const store = cold('     ------s');
      const unsubscribe = '  -----!';
      expectObservable(windowed(source, store, { span: 2, scheduler, windowsInFlight: 2 }), unsubscribe).toBe('');
      expectSubscriptions(source.subscriptions).toBe('^----!');
      expectSubscriptions(store.subscriptions).toBe('--^--!');
    });
  });
});

describe('the overflow of a pipeline window', () => {
  it('sends a window after its wait, and does not count as in flight', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b-c--------d-----------');
      const store = cold('     -----------(s|)');
      const overflowing = cold('            ----------(s|)');
      const expected = '     -------------x-----y-------z';
      const sent = ['        --^----------!', '     ----------------^----------!'];
      const overflow = { overflowAfter: 4, overflowing };
      const sent$ = windowed(source, store, { span: 2, scheduler, ...overflow });
      expectObservable(sent$).toBe(expected, { x: 'a', y: 'bc', z: 'd' });
      expectSubscriptions(store.subscriptions).toBe(sent.map((each) => each.trim()));
      expectSubscriptions(overflowing.subscriptions).toBe('---------^---------!');
    });
  });

  it('is not used when a window in flight is done in time', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b----------');
      const store = cold('     -----(s|)');
      const expected = '     -------x----y-';
      const overflow = { overflowAfter: 4, overflowing: cold('#') };
      expectObservable(windowed(source, store, { span: 2, scheduler, ...overflow })).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('is done before the stream completes', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b----|');
      const store = cold('    ----------(s|)');
      const overflowing = cold('          ------(s|)');
      const expected = '     -----------x-(y|)';
      const overflow = { overflowAfter: 3, overflowing };
      expectObservable(windowed(source, store, { span: 1, scheduler, ...overflow })).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('and the window in flight keep the windows from completing until both have ended', () => {
    marbles(({ cold, flush }, scheduler) => {
      const windows: ClosedWindow<string>[] = [];
      const seen: string[] = [];
      const options = { span: 1, scheduler, windowsInFlight: 1, overflowAfter: 3 };
      cold('a--b----|')
        .pipe(pipelineWindow(options))
        .subscribe({
          next: (window) => windows.push(window),
          complete: () => seen.push('complete'),
        });
      flush();
      for (const window of windows) {
        seen.push(window.values.join());
        window.end();
      }
      expect(seen).toEqual(['a', 'b', 'complete']);
    });
  });

  it('is not used when the source completes before', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b-|');
      const store = cold('    ---(s|)');
      const overflow = { overflowAfter: 3, overflowing: cold('#') };
      const sent$ = windowed(source, store, { span: 1, scheduler, ...overflow });
      expectObservable(sent$).toBe('----x--(y|)', { x: 'a', y: 'b' });
    });
  });

  it('is not waited for when the stream is unsubscribed from', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b---------');
      const store = cold('     ----------s');
      const overflowing = cold('       -');
      const unsubscribe = '  ------!';
      const overflow = { overflowAfter: 4, overflowing };
      expectObservable(windowed(source, store, { span: 1, scheduler, ...overflow }), unsubscribe).toBe('');
      expectSubscriptions(store.subscriptions).toBe('-^----!');
      expectSubscriptions(overflowing.subscriptions).toBe([]);
    });
  });
});
