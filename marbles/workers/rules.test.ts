import { BehaviorSubject, type Observable, Subject, defer, map, of } from 'rxjs';
import { buildRuleset } from '../../src/rules/ruleset';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { type DistributionOptions, distributeRules } from '../../src/workers/rules';
import { marbles } from '../support/marbles';

function loaded(version: string): RuleEvent {
  return { kind: 'loaded', ruleset: buildRuleset([]), origin: { source: 'files', version }, warnings: [] };
}

/** Loads of rules, and `r` rejected ones. */
const EVENTS: Record<string, RuleEvent> = {
  ...{ a: loaded('a'), b: loaded('b'), c: loaded('c') },
  r: { kind: 'rejected', reason: 'r' },
};

/** A worker, by how long it takes to load rules and to begin to use them. */
class FakeWorker {
  readonly exited$ = new Subject<null>();
  readonly requests: string[] = [];
  state: unknown = {};
  isResponsive = true;
  readonly #preparing$: Observable<unknown>;
  readonly #committing$: Observable<unknown>;

  constructor(preparing$: Observable<unknown>, committing$: Observable<unknown> = of(null)) {
    this.#preparing$ = preparing$;
    this.#committing$ = committing$;
  }

  get channel() {
    return {
      request: (method: string): Observable<unknown> =>
        defer(() => {
          this.requests.push(method);
          return method === 'prepare_rules' ? this.#preparing$ : this.#committing$;
        }),
    };
  }
}

/** Distributes rules, which have no files, to workers. Emits the names of the events. */
function distribute(events$: Observable<RuleEvent>, workers: readonly FakeWorker[], startsWithoutRules = false) {
  const workers$ = new BehaviorSubject(workers);
  const killed: string[] = [];
  const pool = {
    workers$,
    killSilent: (worker: FakeWorker, reason: string) => {
      killed.push(reason);
      worker.exited$.next(null);
    },
  } as unknown as DistributionOptions['pool'];
  const active$ = events$.pipe(
    distributeRules({ pool, rawOf: () => [], startsWithoutRules }),
    map((event) => (event.kind === 'loaded' ? event.origin.version : event.reason)),
  );
  return { active$, workers$, killed };
}

const USED = ['prepare_rules', 'commit_rules'];

describe('the distribution of rules', () => {
  it('has one worker after the other load the rules, and emits them when all of them have begun to use them', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const events = hot('                             -a--------', EVENTS);
      const [first, second] = [cold('                   -x|'), cold('--x|')];
      const [quick, slow] = [cold('                        x|'), cold('--x|')];
      const expected = '                               ------a---';
      const { active$ } = distribute(events, [new FakeWorker(first, quick), new FakeWorker(second, slow)]);
      expectObservable(active$).toBe(expected);
      expectSubscriptions(first.subscriptions).toBe('  -^!');
      expectSubscriptions(second.subscriptions).toBe(' --^-!');
      expectSubscriptions(quick.subscriptions).toBe('  ----(^!)');
      expectSubscriptions(slow.subscriptions).toBe('   ----^-!');
    }));

  it('gives workers only the last of the loads that arrive meanwhile, and emits all events in order', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const events = hot('                           rabrc-----r---', EVENTS);
      const loading = cold('                          -----x|');
      const expected = '                             r-----a----(brcr)';
      const worker = new FakeWorker(loading);
      expectObservable(distribute(events, [worker]).active$).toBe(expected);
      expectSubscriptions(loading.subscriptions).toBe(['-^----!', '------^----!']);
    }));

  it('gives the active rules to a worker when its program runs', () =>
    marbles(({ hot, cold, expectObservable, flush }) => {
      const events = hot('       a------', EVENTS);
      const changes = hot('      --b-c--', { b: { state: undefined }, c: { state: {} } });
      const expected = '         -a-----';
      const [early, late] = [new FakeWorker(cold('-x')), new FakeWorker(cold('-x'))];
      const { active$, workers$ } = distribute(events, [early]);
      changes.subscribe((change) => {
        Object.assign(late, change);
        if (change.state === undefined) expect(late.requests).toEqual([]);
        workers$.next([early, late]);
      });
      expectObservable(active$).toBe(expected);
      flush();
      expect([early.requests, late.requests]).toEqual([USED, USED]);
    }));

  it('lets workers decide without rules where they need not wait for the first ones', () =>
    marbles(({ cold, expectObservable, flush }) => {
      const worker = new FakeWorker(cold('-x'));
      expectObservable(distribute(cold('-'), [worker], true).active$).toBe('-');
      flush();
      expect(worker.requests).toEqual(['commit_rules']);
    }));

  it('continues without a worker that ends, or that does not answer and is killed', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions, flush }) => {
      const events = hot('                            a------', EVENTS);
      const ends = hot('                              --x----');
      const stops = hot('                             ----x--');
      const expected = '                              -----a-';
      const [ending, silent] = [cold('                -------'), cold('-------')];
      const workers = [new FakeWorker(ending), new FakeWorker(silent), new FakeWorker(cold('-x'))] as const;
      const { active$, workers$, killed } = distribute(events, workers);
      ends.subscribe(() => workers[0].exited$.next(null));
      stops.subscribe(() => {
        workers[1].isResponsive = false;
        workers$.next(workers.slice(1));
      });
      expectObservable(active$).toBe(expected);
      expectSubscriptions(ending.subscriptions).toBe('^-!');
      expectSubscriptions(silent.subscriptions).toBe('--^-!');
      flush();
      expect(killed).toEqual(['it has not answered for 10000 ms while the rules are replaced']);
    }));

  it('kills no worker that does not answer while no rules are replaced', () =>
    marbles(({ hot, cold, expectObservable, flush }) => {
      const [events, stops] = [hot('a-----', EVENTS), hot('---x--')];
      const worker = new FakeWorker(cold('-x'));
      const { active$, workers$, killed } = distribute(events, [worker]);
      stops.subscribe(() => {
        worker.isResponsive = false;
        workers$.next([worker]);
      });
      expectObservable(active$).toBe('-a----');
      flush();
      expect(killed).toEqual([]);
    }));

  it('fails with the source, and ends what is in progress when it is unsubscribed from', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const events = hot('                            -a-#', EVENTS, new Error('broken'));
      const loading = cold('                           -----');
      const { active$, workers$ } = distribute(events, [new FakeWorker(loading)]);
      expectObservable(active$, '                     ^-! ').toBe('-');
      expectObservable(active$).toBe('                ---#', undefined, new Error('broken'));
      expectSubscriptions(loading.subscriptions).toBe(['-^!', '-^-!']);
      expect(workers$.observed).toBe(false);
    }));
});
