import type { RuleOrigin, RuleSource } from '../../src/streams/ports/rule-source';
import { until } from '../support/waiting/until';
import { RuleEvents } from './rule-files/watched-rules';

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
      const origins: (RuleOrigin | undefined)[] = [];
      await rig.publish({ api: 1, shop: 1 });
      using received = new RuleEvents(rig.source);
      expect(await received.next()).toBe('api=1 shop=1');
      origins.push(received.origin);
      await rig.publish({ api: 2, shop: 2 });
      expect(await received.next()).toBe('api=2 shop=2');
      origins.push(received.origin);
      await rig.publish({ shop: 3 });
      expect(await received.next()).toBe('shop=3');
      origins.push(received.origin);
      expect(new Set(origins.map((origin) => origin?.source))).toEqual(new Set([expect.stringMatching(/./)]));
      expect(new Set(origins.map((origin) => origin?.version)).size).toBe(3);
    });

    test('rejects invalid rules and continues, with the same ruleset when the rules from before return', async () => {
      await using rig = await start();
      await rig.publishInvalid();
      using received = new RuleEvents(rig.source);
      for (const expected of ['shop=1', 'shop=1 again', 'shop=2']) {
        expect(await received.next()).toMatch(/^rejected: .*descriptor has empty key/s);
        await rig.publish({ shop: expected === 'shop=2' ? 2 : 1 });
        expect(await received.next()).toBe(expected);
        await rig.publishInvalid();
      }
      expect(received.ends).toEqual([]);
    });

    test('emits nothing when the same rules are published again', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      using received = new RuleEvents(rig.source);
      await received.next();
      await rig.settled();
      await rig.publish({ shop: 1 });
      await rig.settled();
      expect(received.hasUnread).toBe(false);
      await rig.publish({ shop: 2 });
      expect(await received.next()).toBe('shop=2');
    });

    test('accepts an empty set of rules with a warning', async () => {
      await using rig = await start();
      await rig.publish({});
      using received = new RuleEvents(rig.source);
      expect(await received.next()).toBe('no rules');
      expect(received.warnings).toEqual([expect.stringMatching(/nothing is limited$/)]);
    });

    test('emits the rules and their changes to each subscriber, and leaks nothing after unsubscribing', async () => {
      await using rig = await start();
      await rig.publish({ shop: 1 });
      const before = heldResources();
      {
        using one = new RuleEvents(rig.source);
        using other = new RuleEvents(rig.source);
        for (const limit of [1, 2]) {
          await rig.publish({ shop: limit });
          for (const each of [one, other]) expect(await each.next()).toBe(`shop=${limit}`);
        }
      }
      await until('every resource is released', () => heldResources() <= before);
    });
  });
}
