import { type Subscription } from 'rxjs';
import type { RuleEvent, RuleSource } from '../../src/streams/ports/rule-source';
import { Arrivals } from '../support/waiting/arrivals';
import { summary } from './rule-files/summary';

/** A rule source and the means to change its rules. */
export interface RuleSourceRig extends AsyncDisposable {
  readonly source: RuleSource;
  /** Publishes other rules: for each domain the limit of its one rule. */
  publish(limits: Readonly<Record<string, number>>): Promise<void>;
  /** Publishes rules that the source has to reject. */
  publishInvalid(): Promise<void>;
  /** Resolves when the source has read what was published last. */
  settled(): Promise<void>;
}

/** A subscription, and what it receives. */
class Received implements Disposable {
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
    return !this.#arrivals.hasUnread;
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

const DEADLINE = 60_000;
const SOURCE_RESOURCES = ['FSEventWrap', 'FSReqCallback', 'TCPSocketWrap', 'PipeWrap', 'MessagePort', 'Worker'];

/** The number of resources of this process that a source could have leaked. */
function heldResources(): number {
  return process.getActiveResourcesInfo().filter((resource) => SOURCE_RESOURCES.includes(resource)).length;
}

async function eventually(condition: () => boolean): Promise<boolean> {
  for (const end = Date.now() + DEADLINE; Date.now() < end;) {
    if (condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return condition();
}

/** Tests the contract of {@link RuleSource}. */
export function describeRuleSource(name: string, start: () => Promise<RuleSourceRig>): void {
  describe(`the rule source of ${name}`, () => {
    test('emits the current rules, then all rules on every change', async () => {
      await using rig = await start();
      await rig.publish({ api: 1, shop: 1 });
      using received = new Received(rig.source);
      expect(summary(await received.next())).toBe('api=1 shop=1');
      await rig.publish({ api: 2, shop: 2 });
      expect(summary(await received.next())).toBe('api=2 shop=2');
      await rig.publish({ shop: 3 });
      expect(summary(await received.next())).toBe('shop=3');
      expect(received.ends).toEqual([]);
    });

    test('gives each ruleset the same source and its own version', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using received = new Received(rig.source);
      const first = await received.next();
      await rig.publish({ shop: 2 });
      const second = await received.next();
      if (first.kind === 'rejected' || second.kind === 'rejected') throw new Error('rejected');
      expect(first.origin.source).toBe(second.origin.source);
      expect(first.origin.source).not.toBe('');
      expect(first.origin.version).not.toBe(second.origin.version);
    });

    test('rejects invalid rules and continues', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using received = new Received(rig.source);
      await received.next();
      await rig.publishInvalid();
      const rejected = await received.next();
      expect(summary(rejected)).toMatch(/^rejected: .*descriptor has empty key/s);
      await rig.publish({ shop: 2 });
      expect(summary(await received.next())).toBe('shop=2');
      expect(received.ends).toEqual([]);
    });

    test('rejects rules that are invalid from the start, and emits the valid ones after them', async () => {
      await using rig = await start();
      await rig.publishInvalid();
      using received = new Received(rig.source);
      expect((await received.next()).kind).toBe('rejected');
      await rig.publish({ shop: 1 });
      expect(summary(await received.next())).toBe('shop=1');
    });

    test('emits the same ruleset again when valid rules return after invalid ones', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using received = new Received(rig.source);
      const before = await received.next();
      await rig.publishInvalid();
      await received.next();
      await rig.publish({ shop: 1 });
      const after = await received.next();
      if (before.kind === 'rejected' || after.kind === 'rejected') throw new Error('rejected');
      expect(after.ruleset).toBe(before.ruleset);
    });

    test('emits nothing when the same rules are published again', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using received = new Received(rig.source);
      await received.next();
      await rig.settled();
      await rig.publish({ shop: 1 });
      await rig.settled();
      expect(received.isQuiet).toBe(true);
      await rig.publish({ shop: 2 });
      expect(summary(await received.next())).toBe('shop=2');
    });

    test('accepts an empty set of rules with a warning', async () => {
      await using rig = await start();
      await rig.publish({});
      using received = new Received(rig.source);
      const event = await received.next();
      expect(summary(event)).toBe('no rules');
      expect(event).toMatchObject({ warnings: [expect.stringMatching(/nothing is limited$/)] });
    });

    test('emits to each subscriber, and leaks nothing after unsubscribing', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      const before = heldResources();
      for (const round of [1, 2, 3]) {
        using received = new Received(rig.source);
        expect([round, summary(await received.next())]).toEqual([round, 'shop=1']);
      }
      expect(await eventually(() => heldResources() <= before)).toBe(true);
    });
  });
}
