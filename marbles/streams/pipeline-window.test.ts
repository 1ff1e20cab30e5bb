import { type Observable, map } from 'rxjs';
import { type PipelineWindowOptions, pipelineWindow } from '../../src/streams/pipeline-window';
import { marbles } from '../support/marbles';

type Options = Partial<PipelineWindowOptions<string, string>> &
  Pick<PipelineWindowOptions<string, string>, 'span' | 'scheduler'>;

/** A store that replies with the values it was sent, when `reply` emits. */
function echo(reply: Observable<string>) {
  return (values: readonly string[]) => reply.pipe(map(() => values.join('')));
}

/** The windows of a source, sent to a store one at a time. */
function windowed(source: Observable<string>, store: Observable<string>, options: Options): Observable<string> {
  return source.pipe(pipelineWindow({ windowsInFlight: 1, ...options }, echo(store)));
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
      const overflow = { after: 4, send: echo(overflowing) };
      const sent$ = windowed(source, store, { span: 2, scheduler, overflow });
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
      const overflow = { after: 4, send: () => cold('#') };
      expectObservable(windowed(source, store, { span: 2, scheduler, overflow })).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('is done before the stream completes', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b----|');
      const store = cold('    ----------(s|)');
      const overflowing = cold('          ------(s|)');
      const expected = '     -----------x-(y|)';
      const overflow = { after: 3, send: echo(overflowing) };
      expectObservable(windowed(source, store, { span: 1, scheduler, overflow })).toBe(expected, { x: 'a', y: 'b' });
    });
  });

  it('is not used when the source completes before', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  a--b-|');
      const store = cold('    ---(s|)');
      const overflow = { after: 3, send: () => cold('#') };
      const sent$ = windowed(source, store, { span: 1, scheduler, overflow });
      expectObservable(sent$).toBe('----x--(y|)', { x: 'a', y: 'b' });
    });
  });

  it('is not waited for when the stream is unsubscribed from', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  a--b---------');
      const store = cold('     ----------s');
      const overflowing = cold('       -');
      const unsubscribe = '  ------!';
      const overflow = { after: 4, send: () => overflowing };
      expectObservable(windowed(source, store, { span: 1, scheduler, overflow }), unsubscribe).toBe('');
      expectSubscriptions(store.subscriptions).toBe('-^----!');
      expectSubscriptions(overflowing.subscriptions).toBe([]);
    });
  });
});
