import { firstValueFrom } from 'rxjs';
import { srvServers } from '../../../../src/sinks/counters/plaincache/nodes/srv-records';
import { RecordedLog } from '../../../support/data/recorded-log';

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
});
