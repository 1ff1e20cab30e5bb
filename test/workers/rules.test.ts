import { BehaviorSubject, ReplaySubject, Subject, of } from 'rxjs';
import type { RawRules } from '../../src/rules/files/read-rule-files';
import { buildRuleset, type Ruleset } from '../../src/rules/ruleset';
import { checkFiles } from '../../src/sources/loading/check-files';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import type { Channel } from '../../src/workers/channel';
import { type DistributionOptions, distributeRules, receiveRules } from '../../src/workers/rules';
import { until } from '../support/waiting/until';
import { channelPair } from '../support/workers/channel-pair';

/** The rules of files with a text of any length. */
function load(raw: RawRules): Ruleset {
  return buildRuleset(checkFiles(raw, false).configs);
}

const rawOf = new Map<Ruleset, RawRules>();

/** Rules whose domain is their name, and what they are loaded from; several files of more than one request. */
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

/** A worker that receives rules over a channel, as the pool has it. */
class TestWorker {
  readonly log: string[] = [];
  readonly exited$ = new ReplaySubject<unknown>(1);
  readonly channel: Channel;
  readonly state = { isStoreReady: true, isStoreConnected: true };
  readonly isResponsive = true;
  readonly #worker: Channel;
  hasJoined = false;

  constructor(canLoad = true) {
    const { primary, worker } = channelPair();
    this.channel = primary;
    this.#worker = worker;
    const receiver = receiveRules(worker, (raw) => {
      this.log.push(`prepare ${raw.map(({ path, content }) => `${path}:${content.length}`).join()}`);
      return of(
        canLoad ? { ruleset: load(raw) } : { ruleset: undefined, errors: ['cannot check the rules:', 'no memory'] },
      );
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

function instanceOf(workers: readonly TestWorker[], startsWithoutRules = false) {
  const pool = { workers$: new BehaviorSubject(workers) } as unknown as DistributionOptions['pool'];
  const source$ = new Subject<RuleEvent>();
  const emitted: string[] = [];
  source$
    .pipe(distributeRules({ pool, rawOf: (ruleset) => rawOf.get(ruleset)!, startsWithoutRules }))
    .subscribe((event) => emitted.push(event.kind === 'loaded' ? event.origin.version : event.reason));
  return { source$, emitted };
}

/** The order of the steps is in marbles/workers/rules.test.ts. */
describe('the distribution of rules', () => {
  const [a, b] = ['a', 'b'].map((name) => rules(name));

  it('gives every worker the files of each load, by which it decides from then on', async () => {
    const workers = [new TestWorker(), new TestWorker()];
    const { source$, emitted } = instanceOf(workers);
    source$.next({ kind: 'rejected', reason: 'bad' });
    await until('it is emitted', () => emitted.length === 1);
    expect(workers.map(({ hasJoined }) => hasJoined)).toEqual([false, false]);
    for (const { event } of [a!, b!]) source$.next(event);
    await until('all are emitted', () => emitted.length === 3);
    expect(emitted).toEqual(['bad', 'a', 'b']);
    const files = `prepare a.yaml:${a!.raw[0]!.content.length},b.yaml:${a!.raw[1]!.content.length}`;
    for (const { log } of workers) expect(log).toEqual([files, 'decide by a', files, 'decide by b']);
  });

  it('has a worker join without rules where it need not wait for the first ones', async () => {
    const worker = new TestWorker();
    instanceOf([worker], true);
    await until('it decides without rules', () => worker.hasJoined);
    expect(worker.log).toEqual([]);
  });

  it('continues without a worker that cannot load the rules, when that has ended', async () => {
    const [good, bad] = [new TestWorker(), new TestWorker(false)];
    const { source$, emitted } = instanceOf([good, bad]);
    source$.next(a!.event);
    await until('it has failed', () => bad.log.length === 2);
    expect([bad.log[1], good.hasJoined]).toEqual(['failed: cannot check the rules:\nno memory', false]);
    bad.ends();
    await until('it goes on', () => emitted.length === 1);
    expect([good.hasJoined, bad.hasJoined]).toEqual([true, false]);
  });
});
