import type { ObservableInput } from 'rxjs';
import { type SrvRecord, srvServers } from '../../src/sinks/counters/plaincache/srv-records';
import { RecordedLog } from '../../test/support/data/recorded-log';
import { marbles } from '../support/marbles';

const FIRST = [{ name: 'a.test', port: 1 }];
const BOTH = [...FIRST, { name: 'b.test', port: 2 }];
const FAILING = 'cannot look up the memcached servers; keeping those that are known';
const AGAIN = 'the memcached servers can be looked up again';

interface Course {
  /** Milliseconds between look-ups. */
  readonly refresh: number;
  readonly values?: Readonly<Record<string, readonly SrvRecord[]>>;
}

/**
 * Looks up servers by answers, each of which takes as long as its text. Returns the lists with their times, and the
 * log.
 */
function course(answers: readonly string[], { refresh, values = { f: FIRST, b: BOTH } }: Course) {
  return marbles(({ cold, flush }, scheduler) => {
    const log = new RecordedLog();
    const lists: string[] = [];
    const left = [...answers];
    function lookUp(): ObservableInput<readonly SrvRecord[]> {
      return cold(left.shift() ?? '-', values, new Error('querySrv ENODATA'));
    }
    const servers$ = srvServers({ record: '_memcache._tcp.test', refresh, log, scheduler, lookUp });
    servers$.subscribe({
      next: (servers) => lists.push(`${scheduler.now()} ${servers.join()}`),
      complete: () => lists.push(`${scheduler.now()} complete`),
    });
    flush();
    return { lists, log };
  });
}

describe('the memcached servers of a DNS record', () => {
  it('are looked up once without an interval, and every second until a look-up succeeds', () => {
    const { lists, log } = course(['--#', '#', '-(f|)'], { refresh: 0 });
    expect(lists).toEqual(['2003 a.test:1', '2003 complete']);
    expect(log.lines).toEqual([
      {
        level: 'warn',
        message: FAILING,
        fields: { record: '_memcache._tcp.test', reason: 'querySrv ENODATA' },
      },
      { level: 'notice', message: AGAIN, fields: { record: '_memcache._tcp.test' } },
    ]);
  });

  it('are looked up again after the interval, and replaced when they have changed, and only then', () => {
    const answers = ['-(f|)', '(f|)', '(b|)', '(f|)', '(f|)'];
    expect(course(answers, { refresh: 30 }).lists).toEqual(['1 a.test:1', '61 a.test:1,b.test:2', '91 a.test:1']);
  });

  it('stay while a look-up fails', () => {
    const { lists, log } = course(['(f|)', '#', '#', '(f|)', '(b|)'], { refresh: 30 });
    expect(lists).toEqual(['0 a.test:1', '2060 a.test:1,b.test:2']);
    expect(log.messages).toEqual([FAILING, AGAIN]);
  });

  it('are in the order of the Go service, without those that mean that the service is not available', () => {
    // Node has an empty name for the target `.`.
    const unavailable = [...['', '.', '/foo', 'foo bar'].map((name) => ({ name, port: 1 })), { name: 'foo', port: 0 }];
    // Names are sorted with the dot that ends them, and ports as texts.
    const sorted = ['foo-a.test:1', 'foo:1', 'foo.test:10', 'foo.test:9', 'foo1.test:2'];
    const records = sorted.map((each) => ({ name: each.replace(/:.*/, ''), port: Number(each.replace(/.*:/, '')) }));
    const values = {
      a: [...unavailable, ...records.slice(1).toReversed(), { name: 'foo-a.test.', port: 1 }],
      u: unavailable,
      r: records.slice(1),
    };
    const { lists, log } = course(['(a|)', '(u|)', '(u|)', '(r|)'], { refresh: 1, values });
    expect(lists).toEqual([`0 ${sorted.join()}`, `2001 ${sorted.slice(1).join()}`]);
    expect(log.lines).toMatchObject([{ fields: { reason: 'the record lists no servers' } }, { message: AGAIN }]);
  });
});
