import { firstValueFrom } from 'rxjs';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { instance, options } from './options';

const REJECTED = 'a sentinel rejects SUBSCRIBE; failovers may be noticed late';
const ACCEPTED = 'a sentinel accepts SUBSCRIBE again';

/** How often the sentinel has rejected a subscription. */
async function rejections({ control }: RedisProcess): Promise<number> {
  const entries = (await control.call('ACL', 'LOG')) as (string | number)[][];
  return entries.reduce((sum, [, count]) => sum + Number(count), 0);
}

function sentinelOf(master: RedisProcess, permissions: string): Promise<RedisProcess> {
  return RedisProcess.start({
    mode: ['--sentinel'],
    configuration: () => [`sentinel monitor counters 127.0.0.1 ${master.port} 1`, `user ann on >word ${permissions}`],
  });
}

describe('a sentinel that rejects the subscription', () => {
  let master: RedisProcess;
  const opened: KvstoreCounters[] = [];

  beforeAll(async () => {
    master = await RedisProcess.start();
  });
  afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));
  afterAll(() => master[Symbol.asyncDispose]());

  async function countersOf({ address }: RedisProcess, log: RecordedLog): Promise<KvstoreCounters> {
    const main = instance(`counters,${address}`, { type: 'sentinel', sentinelAuth: 'ann:word' });
    const counters = kvstoreCounters(options(main, { log }));
    opened.push(counters);
    await firstValueFrom(counters.ready$);
    return counters;
  }

  it.each([
    ['to the command', '~* &* +@all -subscribe', '+subscribe', "'subscribe' command"],
    ['to the channel', '~* resetchannels +@all', '&+switch-master', 'channels'],
  ])('is logged once, until the user gets the permission %s', async (_, permissions, missing, reason) => {
    await using sentinel = await sentinelOf(master, permissions);
    const log = new RecordedLog();
    const counters = await countersOf(sentinel, log);
    await until('the subscription was rejected again', async () => (await rejections(sentinel)) > 1);
    expect(log.lines.filter(({ message }) => message === REJECTED)).toEqual([
      {
        level: 'warn',
        message: REJECTED,
        fields: { store: 'main', sentinel: sentinel.address, reason: expect.stringContaining(reason) },
      },
    ]);
    expect(await apply(counters, operation('key', 0))).toEqual([expect.any(Number)]);
    await sentinel.control.call('ACL', 'SETUSER', 'ann', missing);
    await until('the subscription is accepted', () => log.messages.includes(ACCEPTED));
    expect(log.messages.filter((message) => message === REJECTED)).toHaveLength(1);
  });

  it('is queried for the master instead', async () => {
    await using other = await RedisProcess.start();
    await using sentinel = await sentinelOf(master, '~* &* +@all -subscribe');
    const log = new RecordedLog();
    const counters = await countersOf(sentinel, log);
    await until('the subscription was rejected', () => log.messages.includes(REJECTED));
    await sentinel.control.call('SENTINEL', 'REMOVE', 'counters');
    await sentinel.control.call('SENTINEL', 'MONITOR', 'counters', '127.0.0.1', other.port, 1);
    await until('counts are on the other master', async () => {
      await apply(counters, operation('moved', 1)).catch(() => undefined);
      return (await other.control.dbsize()) > 0;
    });
    expect(await other.control.keys('*')).toEqual(['moved']);
  });
});
