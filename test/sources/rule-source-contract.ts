import { type Subscription } from 'rxjs';
import type { RuleEvent, RuleSource } from '../../src/streams/ports/rule-source';
import { Arrivals } from '../support/waiting/arrivals';
import { until } from '../support/waiting/until';
import { summary } from './rule-files/watched-rules';

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

  /** Waits for an event that is not a rejection. */
  async loaded() {
    const event = await this.next();
    if (event.kind === 'rejected') throw new Error(event.reason);
    return event;
  }

  get isQuiet(): boolean {
    return !this.#arrivals.hasUnread;
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

const SOURCE_RESOURCES = ['FSEventWrap', 'FSReqCallback', 'TCPSocketWrap', 'PipeWrap', 'MessagePort', 'Worker'];

/** The number of resources of this process that a source could have leaked. */
function heldResources(): number {
  return process.getActiveResourcesInfo().filter((resource) => SOURCE_RESOURCES.includes(resource)).length;
}

/** Tests the contract of {@link RuleSource}. */
export function describeRuleSource(name: string, start: () => Promise<RuleSourceRig>): void {
  describe(`the rule source of ${name}`, () => {
    test('emits the current rules, then all rules on every change, with one source and a version of each', async () => {
      await using rig = await start();
      await rig.publish({ api: 1, shop: 1 });
      using received = new Received(rig.source);
      const first = await received.loaded();
      expect(summary(first)).toBe('api=1 shop=1');
      await rig.publish({ api: 2, shop: 2 });
      const second = await received.loaded();
      expect(summary(second)).toBe('api=2 shop=2');
      await rig.publish({ shop: 3 });
      const third = await received.loaded();
      expect(summary(third)).toBe('shop=3');
      expect(first.origin.source).not.toBe('');
      expect(new Set([first, second, third].map(({ origin }) => origin.source)).size).toBe(1);
      expect(new Set([first, second, third].map(({ origin }) => origin.version)).size).toBe(3);
    });

    test('rejects invalid rules and continues, with the same ruleset when the rules from before return', async () => {
      await using rig = await start();
      await rig.publishInvalid();
      using received = new Received(rig.source);
      expect((await received.next()).kind).toBe('rejected');
      await rig.publish({ shop: 1 });
      const before = await received.loaded();
      expect(summary(before)).toBe('shop=1');
      await rig.publishInvalid();
      expect(summary(await received.next())).toMatch(/^rejected: .*descriptor has empty key/s);
      await rig.publish({ shop: 1 });
      expect((await received.loaded()).ruleset).toBe(before.ruleset);
      await rig.publishInvalid();
      await received.next();
      await rig.publish({ shop: 2 });
      expect(summary(await received.next())).toBe('shop=2');
      expect(received.ends).toEqual([]);
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

    test('emits the rules and their changes to each subscriber, and leaks nothing after unsubscribing', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      const before = heldResources();
      {
        using one = new Received(rig.source);
        using other = new Received(rig.source);
        for (const limit of [1, 2]) {
          await rig.publish({ shop: limit });
          for (const each of [one, other]) expect(summary(await each.next())).toBe(`shop=${limit}`);
        }
      }
      await until('every resource is released', () => heldResources() <= before);
    });
  });
}
