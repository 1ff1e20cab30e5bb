import { BehaviorSubject, NEVER, ReplaySubject, Subject, of } from 'rxjs';
import { checkFiles } from '../../src/sources/loading/check-files';
import { buildRuleset, type Ruleset } from '../../src/rules/ruleset';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import type { Channel } from '../../src/workers/channel';
import { type DistributionOptions, type RawRules, distributeRules, receiveRules } from '../../src/workers/rules';
import { until } from '../support/waiting/until';
import { channelPair } from '../support/workers/channel-pair';

/** The rules of files with a text of any length. */
function load(raw: RawRules): Ruleset {
  const { configs, placeOf } = checkFiles(raw, false);
  return buildRuleset(configs, placeOf);
}

/** Rules whose domain is their name, and what they are loaded from; several files of more than one message. */
function rules(name: string): { readonly raw: RawRules; readonly event: RuleEvent } {
  const filler = `# ${'ä'.repeat(70_000)}\n`;
  const raw = [
    { path: 'a.yaml', content: Buffer.from(`domain: ${name}\ndescriptors: [{ key: user }]\n${filler}`) },
    { path: 'b.yaml', content: Buffer.from(`${filler}domain: more\n`) },
  ];
  const ruleset = load(raw);
  rawOf.set(ruleset, raw);
  return { raw, event: { kind: 'loaded', ruleset, origin: { source: 'files', version: name }, warnings: [] } };
}

const rawOf = new Map<Ruleset, RawRules>();

/** A worker that receives rules, as the pool has it. */
class TestWorker {
  readonly log: string[] = [];
  readonly exited$ = new ReplaySubject<unknown>(1);
  readonly channel: Channel;
  state: unknown = { isStoreReady: true, isStoreConnected: true };
  isResponsive = true;
  readonly #worker: Channel;
  hasJoined = false;

  /** @param loading whether it loads rules, never gets done with it, or cannot do it */
  constructor(loading: 'good' | 'slow' | 'bad' = 'good') {
    const { primary, worker } = channelPair();
    this.channel = primary;
    this.#worker = worker;
    const receiver = receiveRules(worker, (raw) => {
      this.log.push(`prepare ${raw.map(({ path, content }) => `${path}:${content.length}`).join()}`);
      const ruleset = load(raw);
      if (loading === 'bad') return of({ ruleset: undefined, errors: ['cannot check the rules: ', 'no memory'] });
      return loading === 'slow' ? NEVER : of({ ruleset });
    });
    receiver.failed$.subscribe({ error: ({ message }: Error) => this.log.push(`failed: ${message}`) });
    receiver.joined$.subscribe(() => (this.hasJoined = true));
    receiver.events$.subscribe((event) => {
      if (event.kind === 'loaded') this.log.push(`decide by ${[...event.ruleset.domains.keys()][0]}`);
    });
  }

  ends(): void {
    this.#worker.close();
    this.exited$.next(undefined);
  }
}

function instanceOf(testWorkers: readonly TestWorker[], startsWithoutRules = false) {
  const workers$ = new BehaviorSubject(testWorkers);
  const killed: string[] = [];
  const pool = {
    workers$,
    get workers() {
      return workers$.value;
    },
    killSilent: (worker: TestWorker, reason: string) => {
      killed.push(reason);
      workers$.next(workers$.value.filter((other) => other !== worker));
      worker.ends();
    },
  } as unknown as DistributionOptions['pool'];
  const source$ = new Subject<RuleEvent>();
  const emitted: string[] = [];
  source$
    .pipe(distributeRules({ pool, rawOf: (ruleset) => rawOf.get(ruleset)!, startsWithoutRules }))
    .subscribe((event) => emitted.push(event.kind === 'loaded' ? event.origin.version : event.reason));
  return { source$, emitted, workers$, killed };
}

describe('the distribution of rules', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => rules(name));

  it('gives every worker the files of rules, and those of a load that others follow only if it is the last one, and emits all in order', async () => {
    const workers = [new TestWorker(), new TestWorker()];
    const { source$, emitted } = instanceOf(workers);
    source$.next({ kind: 'rejected', reason: 'bad' });
    await until('it is emitted', () => emitted.length === 1);
    expect(workers.map(({ hasJoined }) => hasJoined)).toEqual([false, false]);
    for (const { event } of [a!, b!, c!]) source$.next(event);
    source$.next({ kind: 'rejected', reason: 'worse' });
    source$.next(d!.event);
    await until('all are emitted', () => emitted.length === 6);
    expect(emitted).toEqual(['bad', 'a', 'b', 'c', 'worse', 'd']);
    const files = `prepare a.yaml:${a!.raw[0]!.content.length},b.yaml:${a!.raw[1]!.content.length}`;
    for (const { log } of workers) expect(log).toEqual([files, 'decide by a', files, 'decide by d']);
  });

  it('lets no worker use rules before all have them, and does not emit them before', async () => {
    const [quick, slow] = [new TestWorker(), new TestWorker('slow')];
    const { source$, emitted } = instanceOf([quick, slow]);
    source$.next(a!.event);
    await until('the slow one has begun', () => slow.log.length === 1);
    expect([quick.log.length, quick.hasJoined, emitted]).toEqual([1, false, []]);
    slow.ends();
    await until('it goes on without the other', () => emitted.length === 1);
    expect([quick.log.at(-1), quick.hasJoined]).toEqual(['decide by a', true]);
  });

  it('gives the active rules to a worker that starts later, or lets it decide without, and nothing to one whose program does not run', async () => {
    const early = new TestWorker();
    const { source$, emitted, workers$ } = instanceOf([early]);
    source$.next(a!.event);
    await until('they are active', () => emitted.length === 1);
    const late = new TestWorker();
    const { state } = late;
    late.state = undefined;
    workers$.next([early, late]);
    late.state = state;
    workers$.next([early, late]);
    await until('it has joined', () => late.hasJoined);
    expect([early.log.length, late.log.at(-1)]).toEqual([2, 'decide by a']);
    const without = new TestWorker();
    instanceOf([without], true);
    await until('it decides without rules', () => without.hasJoined);
    expect(without.log).toEqual([]);
  });

  it('goes on without a worker that cannot load the rules, when that has ended', async () => {
    const [good, bad] = [new TestWorker(), new TestWorker('bad')];
    const { source$, emitted } = instanceOf([good, bad]);
    source$.next(a!.event);
    await until('it has failed', () => bad.log.length === 2);
    expect([bad.log[1], good.hasJoined]).toEqual(['failed: cannot check the rules: \nno memory', false]);
    bad.ends();
    await until('it goes on', () => emitted.length === 1);
    expect([good.hasJoined, bad.hasJoined]).toEqual([true, false]);
  });

  it('kills a worker that does not answer, and goes on without it', async () => {
    const [quick, stopped] = [new TestWorker(), new TestWorker('slow')];
    const { source$, emitted, workers$, killed } = instanceOf([quick, stopped]);
    source$.next(a!.event);
    await until('it has begun', () => stopped.log.length === 1);
    stopped.isResponsive = false;
    workers$.next([quick, stopped]);
    await until('it goes on', () => emitted.length === 1);
    expect([killed, quick.log.at(-1)]).toEqual([
      ['it has not answered for 10000 ms while the rules are replaced'],
      'decide by a',
    ]);
  });
});
