import { firstValueFrom, take, toArray } from 'rxjs';
import { srvServers } from '../../../../src/sinks/counters/plaincache/nodes/srv-records';
import { RecordedLog } from '../../../support/data/recorded-log';

/** Node has an empty name for the target `.`. */
const UNAVAILABLE = [
  { name: '', port: 1 },
  { name: '.', port: 1 },
  { name: 'foo.test', port: 0 },
  { name: '/foo', port: 1 },
  { name: 'foo bar', port: 1 },
];

describe('the servers of a DNS record', () => {
  it('are in the order of the Go service, which sorts names with the dot that ends them', async () => {
    const records = [
      { name: 'foo1.test', port: 2 },
      { name: 'foo.test', port: 9 },
      { name: 'foo.test', port: 10 },
      { name: 'foo-a.test.', port: 1 },
      { name: 'foo', port: 1 },
    ];
    const servers$ = srvServers({
      record: '_memcache._tcp.test',
      refresh: 0,
      log: new RecordedLog(),
      lookUp: () => Promise.resolve(records),
    });
    expect(await firstValueFrom(servers$)).toEqual([
      'foo-a.test:1',
      'foo:1',
      'foo.test:10',
      'foo.test:9',
      'foo1.test:2',
    ]);
  });

  it('are without records that mean that the service is not available, and targets that are no host names', async () => {
    const servers$ = srvServers({
      record: '_memcache._tcp.test',
      refresh: 0,
      log: new RecordedLog(),
      lookUp: () => Promise.resolve([...UNAVAILABLE, { name: 'foo.test', port: 1 }]),
    });
    expect(await firstValueFrom(servers$)).toEqual(['foo.test:1']);
  });

  it('stay the same, with one warning, while all records mean that the service is not available', async () => {
    const log = new RecordedLog();
    const answers = [[{ name: 'foo.test', port: 1 }], UNAVAILABLE, UNAVAILABLE, [{ name: 'bar.test', port: 1 }]];
    const servers$ = srvServers({
      record: '_memcache._tcp.test',
      refresh: 1,
      log,
      lookUp: () => Promise.resolve(answers.shift() ?? []),
    });
    expect(await firstValueFrom(servers$.pipe(take(2), toArray()))).toEqual([['foo.test:1'], ['bar.test:1']]);
    expect(log.lines).toMatchObject([
      {
        message: 'cannot look up the memcached servers; keeping those that are known',
        fields: { reason: 'the record lists no servers' },
      },
      { message: 'the memcached servers can be looked up again' },
    ]);
  });
});
