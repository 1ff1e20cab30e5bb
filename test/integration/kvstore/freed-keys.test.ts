import { tableKey } from '../../../src/text/table-key';
import type { InstanceOptions, KvstoreOptions } from '../../../src/sinks/counters/kvstore/deployment';
import type { Freed } from '../../../src/sinks/counters/kvstore/freed-keys';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { RedisTls } from '../../support/processes/redis/redis-tls';
import { schedulerWith } from '../../support/waiting/scheduler-with';
import { until } from '../../support/waiting/until';
import { connected, instance } from './options';

const CHANNEL = 'shop_weir_freed_keys';
/** Milliseconds after which what was rejected is tried again. */
const REJECTED_FOR = 60_000;

let subscribed: (() => void)[] = [];
afterEach(() => {
  for (const unsubscribe of subscribed) unsubscribe();
  subscribed = [];
});

/** A process with a local cache, and what it has heard of others. */
async function listening(
  main: Partial<InstanceOptions> & { readonly url: string },
  channel = CHANNEL,
  more: Partial<KvstoreOptions> = {},
) {
  const log = new RecordedLog();
  // Not the time of performance.now(): a rejection is tried again after the next loss, too.
  const scheduler = schedulerWith({ [REJECTED_FOR]: 50 });
  const counters = await connected(instance(main.url, main), { ...more, freedKeysChannel: channel, log, scheduler });
  const heard: Freed[] = [];
  const subscription = counters.freedKeys!.freed$.subscribe((freed) => heard.push(freed));
  subscribed.push(() => subscription.unsubscribe());
  return {
    /** The lines about the channel: on a busy machine, a connection may be lost. */
    lines: () => log.lines.filter(({ fields }) => fields['channel'] !== undefined),
    heard,
    announce: (...keys: readonly string[]) => keys.forEach((key) => counters.freedKeys!.announce(key)),
    flush: () => counters.freedKeys!.flush(),
    /** The keys, once it has heard of so many. */
    keys: (count: number) =>
      until(`${count} keys are heard of`, () => {
        const keys = heard.filter((freed) => freed !== 'all').flat();
        return keys.length >= count && keys;
      }),
    subscription: (times = 1) =>
      until('it is subscribed', () => heard.filter((freed) => freed === 'all').length >= times),
  };
}

describe('the keys of reduced counters', () => {
  it('are announced to all other processes with the same prefix, several in a message, long ones as their digests', async () => {
    await using server = await RedisProcess.start();
    const all = await Promise.all([listening({ url: server.address }), listening({ url: server.address })]);
    const [one, other] = all;
    const stranger = await listening({ url: server.address }, 'other_weir_freed_keys');
    await Promise.all([...all, stranger].map(({ subscription }) => subscription()));
    const odd = ['a', 'a', '\ud800', '\u0000', '"]', '鍵', 'x'.repeat(1_000), 'x'.repeat(100_000)];
    const before = Number(/cmdstat_publish:calls=(\d+)/.exec(await server.control.info('commandstats'))?.[1] ?? 0);
    one.announce(...odd);
    expect(await other.keys(7)).toEqual([...new Set(odd)].map(tableKey));
    one.announce('last');
    await other.keys(8);
    expect(await server.control.info('commandstats')).toContain(`cmdstat_publish:calls=${before + 2},`);
    expect([one.heard, stranger.heard]).toEqual([['all'], ['all']]);
  });

  it('are announced in messages of at most 64 KiB, 10,000 of them in 100 ms, and others with a warning left out', async () => {
    await using server = await RedisProcess.start();
    const [one, other] = await Promise.all([listening({ url: server.address }), listening({ url: server.address })]);
    await other.subscription();
    // The longest in JSON: each of the characters becomes six.
    const keys = Array.from({ length: 10_050 }, (_, index) => `${'\u0001'.repeat(200)}${index}`);
    one.announce(...keys);
    expect(await other.keys(10_000)).toEqual(keys.slice(0, 10_000));
    expect(other.lines()).toEqual([]);
    expect(one.lines()).toMatchObject([{ level: 'warn', fields: { channel: CHANNEL, announced: 10_000 } }]);
  });

  it('are all forgotten when the subscription was lost, and heard of again', async () => {
    await using server = await RedisProcess.start();
    const [one, other] = await Promise.all([listening({ url: server.address }), listening({ url: server.address })]);
    await other.subscription();
    await server.control.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await other.subscription(2);
    one.announce('k');
    expect(await other.keys(1)).toEqual(['k']);
    await server.crash();
    await server.run();
    await other.subscription(3);
    await until('the announcing process is connected', async () => {
      one.announce('l');
      await one.flush();
      return other.heard.flat().includes('l');
    });
    expect(other.lines()).toEqual([]);
  });

  it.each([
    '',
    'null',
    '{"0":"a"}',
    '["name"]',
    '["name",1]',
    '["name",null]',
    '["name",["a"]]',
    '[1,"a"]',
    '["name","a"',
    JSON.stringify(['name', 'x'.repeat(257)]),
    JSON.stringify(['name', ...Array.from({ length: 9_000 }, () => 'a')]),
    `[${'['.repeat(20_000)}`,
  ])('are not read from a message of another form, which is logged once (case %#)', async (message) => {
    await using server = await RedisProcess.start();
    const other = await listening({ url: server.address });
    await other.subscription();
    for (let time = 0; time < 3; time += 1) await server.control.publish(CHANNEL, message);
    await server.control.publish(CHANNEL, '["name","good"]');
    expect((await other.keys(1)).at(-1)).toBe('good');
    expect(other.lines()).toMatchObject([{ level: 'warn', fields: { channel: CHANNEL } }]);
  });

  it('are heard of again after a message that is larger than what is read', async () => {
    await using server = await RedisProcess.start();
    const other = await listening({ url: server.address });
    await other.subscription();
    await server.control.publish(CHANNEL, 'x'.repeat(1_000_000));
    await other.subscription(2);
    await server.control.publish(CHANNEL, '["name","good"]');
    expect(await other.keys(1)).toEqual(['good']);
  });

  it('are not announced where the user may not use the channel, with one warning; later they are', async () => {
    await using server = await RedisProcess.start();
    await server.control.call('ACL', 'SETUSER', 'weir', 'on', '>secret', '~*', '+@all', 'resetchannels');
    const main = { url: server.address, auth: 'weir:secret' };
    const [one, other] = await Promise.all([listening(main), listening(main)]);
    await until('both have warned', () => [one, other].every(({ lines }) => lines().length > 0));
    one.announce('k');
    await one.flush();
    for (const { lines } of [one, other]) {
      expect(lines()).toMatchObject([
        { level: 'warn', fields: { store: 'main', channel: CHANNEL, reason: expect.stringContaining('NOPERM') } },
      ]);
    }
    await server.control.call('ACL', 'SETUSER', 'weir', `&${CHANNEL}`);
    await Promise.all([one.subscription(), other.subscription()]);
    await server.control.publish(CHANNEL, '["name","k"]');
    expect(await other.keys(1)).toEqual(['k']);
    expect(other.lines().map(({ message }) => message)).toEqual([
      'cannot use the channel of reduced counters; local caches notice them after LOCAL_CACHE_MAX_AGE',
      'the channel of reduced counters can be used again',
    ]);
  });

  it('are announced on the main instance, with its TLS and its password', async () => {
    using tls = new RedisTls();
    await using server = await RedisProcess.start({
      directives: [...tls.directives('127.0.0.1'), '--requirepass', 'secret'],
      isTls: true,
      control: { ...tls.server.control, password: 'secret' },
    });
    await using perSecond = await RedisProcess.start();
    const main = { url: server.address, tls: true, auth: 'secret' };
    const more = { tlsFiles: tls.files({ withCertificate: true }), perSecond: instance(perSecond.address) };
    const [one, other] = await Promise.all([listening(main, CHANNEL, more), listening(main, CHANNEL, more)]);
    await other.subscription();
    one.announce('k');
    expect(await other.keys(1)).toEqual(['k']);
    expect(await perSecond.control.info('commandstats')).not.toMatch(/cmdstat_(?:publish|subscribe)/);
  });

  it('are announced over all nodes of a cluster', async () => {
    await using cluster = await RedisCluster.start();
    const main = { url: cluster.url, type: 'cluster' } as const;
    const all = await Promise.all(Array.from({ length: 6 }, () => listening(main)));
    await Promise.all(all.map(({ subscription }) => subscription()));
    all[0]!.announce('k');
    for (const other of all.slice(1)) expect(await other.keys(1)).toEqual(['k']);
  });

  it('are announced on the master that sentinels name, also after a failover', async () => {
    await using sentinels = await RedisSentinels.start();
    const main = { url: sentinels.url, type: 'sentinel' } as const;
    const [one, other] = await Promise.all([listening(main), listening(main)]);
    await other.subscription();
    one.announce('k');
    expect(await other.keys(1)).toEqual(['k']);
    await sentinels.failOver();
    await other.subscription(2);
    await until('it is heard of', async () => {
      one.announce('l');
      await one.flush();
      return other.heard.flat().includes('l');
    });
  });
});
