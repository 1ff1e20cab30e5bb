import { type Subscription } from 'rxjs';
import type { RuleEvent, RuleSource } from '../../src/streams/ports/rule-source';
import { Arrivals } from '../support/waiting/arrivals';
import { summary } from './rule-files/summary';

/** A place that rules come from, in the hands of a test. */
export interface RuleSourceRig extends AsyncDisposable {
  readonly source: RuleSource;
  /** Puts other rules in place: for each domain the limit of its one rule. */
  publish(limits: Readonly<Record<string, number>>): Promise<void>;
  publishBad(): Promise<void>;
  /** Resolves when whatever was published last has been looked at. */
  lookedAt(): Promise<void>;
}

/** What a subscription is told. */
class Told implements Disposable {
  readonly #arrivals = new Arrivals<RuleEvent>('an event');
  readonly #subscription: Subscription;
  readonly ends: string[] = [];

  constructor({ events$ }: RuleSource) {
    this.#subscription = events$.subscribe({
      next: (event) => this.#arrivals.add(event),
      error: () => this.ends.push('failed'),
      complete: () => this.ends.push('completed'),
    });
  }

  next(): Promise<RuleEvent> {
    return this.#arrivals.next();
  }

  get isQuiet(): boolean {
    return !this.#arrivals.isWaiting;
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

const DEADLINE = 10_000;
const HELD = ['FSEventWrap', 'FSReqCallback', 'TCPSocketWrap', 'PipeWrap', 'MessagePort', 'Worker'];

/** What this process holds that a source might have forgotten. */
function held(): number {
  return process.getActiveResourcesInfo().filter((resource) => HELD.includes(resource)).length;
}

async function eventually(condition: () => boolean): Promise<boolean> {
  for (const end = Date.now() + DEADLINE; Date.now() < end;) {
    if (condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return condition();
}

/** What everybody who listens to a {@link RuleSource} relies on, whatever it is. */
export function describeRuleSource(name: string, start: () => Promise<RuleSourceRig>): void {
  describe(`rules from ${name}`, () => {
    test('come at once as they are, then with every change, whole', async () => {
      await using rig = await start();
      await rig.publish({ api: 1, shop: 1 });
      using told = new Told(rig.source);
      expect(summary(await told.next())).toBe('api=1 shop=1');
      await rig.publish({ api: 2, shop: 2 });
      expect(summary(await told.next())).toBe('api=2 shop=2');
      await rig.publish({ shop: 3 });
      expect(summary(await told.next())).toBe('shop=3');
      expect(told.ends).toEqual([]);
    });

    test('say where they come from, and differ in their version', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using told = new Told(rig.source);
      const first = await told.next();
      await rig.publish({ shop: 2 });
      const second = await told.next();
      if (first.kind === 'rejected' || second.kind === 'rejected') throw new Error('rejected');
      expect(first.origin.source).toBe(second.origin.source);
      expect(first.origin.source).not.toBe('');
      expect(first.origin.version).not.toBe(second.origin.version);
    });

    test('that are bad are told as rejected, and it goes on', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using told = new Told(rig.source);
      await told.next();
      await rig.publishBad();
      const rejected = await told.next();
      expect(summary(rejected)).toMatch(/^rejected: .*descriptor has empty key/s);
      await rig.publish({ shop: 2 });
      expect(summary(await told.next())).toBe('shop=2');
      expect(told.ends).toEqual([]);
    });

    test('that are bad from the start are told, and the good ones after them', async () => {
      await using rig = await start();
      await rig.publishBad();
      using told = new Told(rig.source);
      expect((await told.next()).kind).toBe('rejected');
      await rig.publish({ shop: 1 });
      expect(summary(await told.next())).toBe('shop=1');
    });

    test('that come back after bad ones are told again, and are the very same', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using told = new Told(rig.source);
      const before = await told.next();
      await rig.publishBad();
      await told.next();
      await rig.publish({ shop: 1 });
      const after = await told.next();
      if (before.kind === 'rejected' || after.kind === 'rejected') throw new Error('rejected');
      expect(after.ruleset).toBe(before.ruleset);
    });

    test('that are the same again are not told', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using told = new Told(rig.source);
      await told.next();
      await rig.lookedAt();
      await rig.publish({ shop: 1 });
      await rig.lookedAt();
      expect(told.isQuiet).toBe(true);
      await rig.publish({ shop: 2 });
      expect(summary(await told.next())).toBe('shop=2');
    });

    test('may be none, with a warning', async () => {
      await using rig = await start();
      await rig.publish({});
      using told = new Told(rig.source);
      const event = await told.next();
      expect(summary(event)).toBe('no rules');
      expect(event).toMatchObject({ warnings: [expect.stringMatching(/nothing is limited$/)] });
    });

    test('are told to each who listens, and whoever stops listening leaves nothing behind', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      const before = held();
      for (const round of [1, 2, 3]) {
        using told = new Told(rig.source);
        expect([round, summary(await told.next())]).toEqual([round, 'shop=1']);
      }
      expect(await eventually(() => held() <= before)).toBe(true);
    });
  });
}
