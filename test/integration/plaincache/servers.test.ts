import { firstValueFrom, merge } from 'rxjs';
import type { PlaincacheCounters, PlaincacheOptions } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { lookUpSrv } from '../../../src/sinks/counters/plaincache/srv-records';
import type { StoreTlsFiles } from '../../../src/sinks/counters/tls-material';
import type { CounterLane } from '../../../src/streams/ports/counters';
import { LaneClient } from '../../support/clients/lane-client';
import { namedFile, newAuthority } from '../../support/data/certificates';
import { RecordedLog } from '../../support/data/recorded-log';
import { TemporaryFolder } from '../../support/data/temporary-folder';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import rows from './nodes-of-keys.json';
import { openPlaincache } from './options';

const RECORD = '_memcache._tcp.example.test';

let first: MemcachedProcess;
let second: MemcachedProcess;
let log: RecordedLog;
beforeAll(async () => {
  [first, second] = await Promise.all([MemcachedProcess.start(), MemcachedProcess.start()]);
});
beforeEach(() => {
  log = new RecordedLog();
});
afterAll(() => Promise.all([first, second].map((server) => server[Symbol.asyncDispose]())));

function open(servers: readonly { readonly address: string }[], more: Partial<PlaincacheOptions> = {}) {
  return openPlaincache(servers, { log, ...more });
}

function recordOf({ address }: MemcachedProcess) {
  const [name, port] = address.split(':');
  return { name: name!, port: Number(port) };
}

/** The lanes of many keys. */
function lanesOf(counters: PlaincacheCounters): ReadonlySet<CounterLane> {
  return new Set(Array.from({ length: 40 }, (_, index) => counters.laneOf(operation(`k${index}`, 1))));
}

/** Recorded with Go: `crc32.ChecksumIEEE([]byte(key)) % n`, for n from 1 to 7. */
const NODES = rows as unknown as readonly (readonly [key: string, ...nodes: number[]])[];

it.each([1, 2, 3, 4, 5, 6, 7])(
  'the server of a key is that of the Go service, for 200 keys and %i servers',
  (count) => {
    const addresses = Array.from({ length: count }, (_, index) => ({ address: `127.0.0.1:${index + 1}` }));
    const counters = open(addresses);
    const nodeOf = new Map<CounterLane, number>();
    for (const [key, ...nodes] of NODES) {
      const lane = counters.laneOf(operation(key, 1));
      if (!nodeOf.has(lane)) nodeOf.set(lane, nodes[count - 1]!);
      expect([key, nodeOf.get(lane)]).toEqual([key, nodes[count - 1]]);
    }
    expect([NODES.length, new Set(nodeOf.values()).size]).toEqual([200, count]);
  },
);

describe('memcached servers from a DNS record', () => {
  it('are looked up at start, as often as it takes, and replaced when the record changes, and only then', async () => {
    const dns = { records: [] as ReturnType<typeof recordOf>[], queries: 0 };
    /** Fails while there are no records. */
    async function lookUp() {
      dns.queries += 1;
      if (dns.records.length === 0) throw new Error('querySrv ENODATA');
      return dns.records;
    }
    const counters = open([], { srv: RECORD, srvRefresh: 20, lookUp });
    await expect(apply(counters, operation('k', 1))).rejects.toMatchObject({
      message: 'the memcached servers are not known yet',
    });
    await until('the failure is logged', () => log.lines.length === 1);
    expect(log.lines[0]?.fields).toEqual({ record: RECORD, reason: expect.stringContaining('querySrv') as string });
    dns.records = [recordOf(first), recordOf(second)];
    await firstValueFrom(counters.ready$);
    expect(await apply(counters, operation('at_start', 2))).toEqual([2]);
    const lanes = lanesOf(counters);
    expect(lanes.size).toBe(2);

    const asked = dns.queries;
    dns.records = [recordOf(second), recordOf(first)];
    await until('the record is looked up again', () => dns.queries > asked + 2);
    dns.records = [];
    await until('the failure is logged', () => log.lines.length === 3);
    dns.records = [recordOf(second), recordOf(first)];
    expect(lanesOf(counters)).toEqual(lanes);
    expect(log.messages).toEqual([
      'cannot look up the memcached servers; keeping those that are known',
      'the memcached servers can be looked up again',
      'cannot look up the memcached servers; keeping those that are known',
    ]);

    const retired = firstValueFrom(merge(...[...lanes].map((lane) => lane.retired$)));
    dns.records = [recordOf(second)];
    await retired;
    expect(lanesOf(counters).size).toBe(1);
    expect(await apply(counters, operation('after', 1))).toEqual([1]);
    await counters.close();
    expect(await second.value('after')).toBe('1');
  });

  it('cannot be looked up under a name that does not exist', async () => {
    await expect(lookUpSrv('_memcache._tcp.invalid')).rejects.toThrow(/query/);
  });
});

it('a call with one key that memcached does not allow counts nothing on any server', async () => {
  const counters = open([first, second]);
  const keys = Array.from({ length: 10 }, (_, index) => `good_${index}`);
  expect(new Set(keys.map((key) => counters.laneOf(operation(key, 1)))).size).toBe(2);
  using client = new LaneClient(counters);
  const batch = [...keys, 'a b'].map((key) => operation(key, 1));
  await expect(client.call(batch)).rejects.toMatchObject({ code: 'invalid_request' });
  await counters.close();
  const values = await Promise.all([first, second].flatMap((server) => keys.map((key) => server.value(key))));
  expect(values.filter((value) => value !== undefined)).toEqual([]);
});

it('the store is unhealthy when no server answers, but not while one of two does', async () => {
  await using only = await MemcachedProcess.start();
  const states: boolean[] = [];
  const subscription = open([only], { checkEvery: 100 }).connected$.subscribe((state) => states.push(state));
  const ofBoth: boolean[] = [];
  const other = new RecordedLog();
  subscription.add(
    open([only, first], { log: other, checkEvery: 100 }).connected$.subscribe((state) => ofBoth.push(state)),
  );
  try {
    expect(states).toEqual([true]);
    await only.crash();
    await until('the server is missed by both', () => states.length === 2 && other.lines.length > 0);
    expect([states, ofBoth]).toEqual([[true, false], [true]]);
    await only.run();
    await until('the store is connected', () => states.length === 3);
    expect(states).toEqual([true, false, true]);
  } finally {
    subscription.unsubscribe();
  }
});

describe('memcached over TLS', () => {
  const folder = new TemporaryFolder();
  const [authority, other] = [newAuthority(), newAuthority()];
  let server: MemcachedProcess;
  let misnamed: MemcachedProcess;

  beforeAll(async () => {
    folder.write('ca.pem', authority.ca);
    folder.write('other-ca.pem', other.ca);
    for (const [name, host] of Object.entries({ server: '127.0.0.1', misnamed: 'elsewhere.test', client: 'c.test' })) {
      const { cert, key } = authority.issue(host);
      folder.write(`${name}.pem`, cert);
      folder.write(`${name}.key`, key);
    }
    [server, misnamed] = (await Promise.all(
      ['server', 'misnamed'].map((name) =>
        MemcachedProcess.start({
          args: [
            ...['-Z', '-o', `ssl_chain_cert=${folder.at(`${name}.pem`)}`, '-o', `ssl_key=${folder.at(`${name}.key`)}`],
            ...['-o', 'ssl_verify_mode=2', '-o', `ssl_ca_cert=${folder.at('ca.pem')}`],
          ],
        }),
      ),
    )) as [MemcachedProcess, MemcachedProcess];
  });
  afterAll(async () => {
    await Promise.all([server, misnamed].map((each) => each[Symbol.asyncDispose]()));
    for (const each of [authority, other]) each.dispose();
    folder[Symbol.dispose]();
  });

  const skipping = { skipHostnameVerification: true };
  const withoutPair = { cert: undefined, key: undefined };
  it.each<readonly [to: string, how: string, more: Partial<StoreTlsFiles> | undefined, problem: RegExp | undefined]>([
    ['server', 'its CA, a client certificate and its name', {}, undefined],
    ['misnamed', 'names that are not verified', skipping, undefined],
    ['misnamed', 'another name', {}, /does not match certificate's altnames/],
    ['server', 'another CA', { ...skipping, ca: namedFile('CA', 'other-ca.pem') }, /certificate/],
    ['server', 'no client certificate', withoutPair, /certificate required|closed the connection|ECONNRESET/i],
    ['server', 'no TLS', undefined, /closed the connection|ECONNRESET|did not answer/],
  ])('reaches %s with %s only if both sides accept', async (to, _, more, problem) => {
    const { ca, ...rest } = more ?? {};
    const tlsFiles: StoreTlsFiles = {
      ca: namedFile('CA', folder.at(ca?.path ?? 'ca.pem')),
      cert: namedFile('CERT', folder.at('client.pem')),
      key: namedFile('KEY', folder.at('client.key')),
      skipHostnameVerification: false,
      ...rest,
    };
    const counters = open([to === 'server' ? server : misnamed], { tlsFiles: more && tlsFiles });
    const key = operation(`tls_${Math.random()}`, 1);
    await apply(counters, key);
    expect(await apply(counters, key)).toEqual([problem === undefined ? 2 : 1]);
    const reason = log.lines[0]?.fields['reason'];
    expect(reason).toEqual(problem && expect.stringMatching(problem));
    const absent = { ...tlsFiles, ca: namedFile('PLAINCACHE_TLS_CACERT', folder.at('absent.pem')) };
    expect(() => open([server], { tlsFiles: absent })).toThrow(/PLAINCACHE_TLS_CACERT=.*absent\.pem/);
  });
});
