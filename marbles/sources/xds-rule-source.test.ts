import { EMPTY, type Observable, type SchedulerLike, defer, ignoreElements, map, switchMap, timer, using } from 'rxjs';
import { type DiscoveryRequest, DiscoveryResponse } from '../../src/gen/envoy/service/discovery/v3/discovery';
import type { Any } from '../../src/gen/google/protobuf/any';
import { readSettings } from '../../src/settings/read-settings';
import { SETTLE } from '../../src/sources/xds/ads-stream';
import { loadRules } from '../../src/sources/loading/load-rules';
import { RULES_TYPE_URL } from '../../src/sources/xds/check-resources';
import { type AdsEvent, AdsStreamError } from '../../src/sources/xds/connect-ads';
import { type XdsRuleOptions, xdsRuleSource } from '../../src/sources/xds/xds-rule-source';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { ruleResource, simpleResource } from '../../test/support/data/rule-resources';
import { domainConfig } from '../../test/support/data/rules';
import { RecordedLog } from '../../test/support/data/recorded-log';
import { marbles } from '../support/marbles';

const CONNECTED: AdsEvent = { kind: 'connected' };
function response(versionInfo: string, ...resources: Any[]): AdsEvent {
  const fields = { versionInfo, resources, canary: false, typeUrl: RULES_TYPE_URL, nonce: `n${versionInfo}` };
  return { kind: 'response', message: DiscoveryResponse.encode(fields).finish() };
}

/** `c` connected; `1`, `2`, `3` valid rules of that version; `x` and `y` invalid rules. */
const SENT: Record<string, AdsEvent> = {
  c: CONNECTED,
  1: response('1', simpleResource('shop', 1)),
  2: response('2', simpleResource('shop', 2)),
  3: response('3', simpleResource('shop', 3)),
  x: response('x', ruleResource('shop', domainConfig('shop', { key: '' }))),
  y: response('y', ruleResource('shop', domainConfig('', { key: 'a' }))),
};

interface Scenario {
  readonly scheduler: SchedulerLike;
  readonly log?: RecordedLog;
  readonly requests?: string[];
  readonly connections?: boolean[];
  readonly settings?: Partial<XdsRuleOptions['settings']>;
  readonly random?: number;
  /** No pauses by default. */
  readonly settle?: XdsRuleOptions['settle'];
  /** How long loading rules takes, in milliseconds; 0 by default. */
  readonly loading?: number;
}

const SETTINGS = {
  ...readSettings({}).settings,
  configGrpcXdsServerUrl: 'xds:1',
  configGrpcXdsNodeId: 'node',
  configGrpcXdsNodeMetadata: {},
  configGrpcXdsServerConnectRetryInterval: 3,
  xdsClientBackoffInitialInterval: 10,
  xdsClientBackoffMaxInterval: 60,
  xdsClientBackoffRandomFactor: 1,
  xdsClientBackoffJitter: false,
} as const;

/**
 * A source whose first stream is `streams[0]` and so on. Emits the version of loaded rules, `x` for a rejection, `r`
 * for a repeated one.
 */
function source(
  streams: readonly Observable<AdsEvent>[],
  { scheduler, log = new RecordedLog(), random = 0, settle = () => 0, loading = 0, ...more }: Scenario,
) {
  let opened = 0;
  const { events$ } = xdsRuleSource({
    settings: { ...SETTINGS, ...more.settings },
    connect: (requests$) =>
      defer(() => {
        opened += 1;
        return using(
          () => requests$.subscribe((request) => more.requests?.push(`${scheduler.now()} ${describeRequest(request)}`)),
          () => streams[opened - 1] ?? streams.at(-1) ?? EMPTY,
        );
      }),
    load: (content) => {
      const loaded$ = loadRules([{ path: '', content }], { form: 'response', settings: SETTINGS });
      return loading === 0 ? loaded$ : timer(loading, scheduler).pipe(switchMap(() => loaded$));
    },
    random: () => random,
    settle,
    log,
    onConnection: (isConnected) => more.connections?.push(isConnected),
    scheduler,
  });
  return events$.pipe(map(letter));
}

function letter(event: RuleEvent): string {
  if (event.kind === 'rejected') return event.isRepeated === true ? 'r' : 'x';
  return event.origin.version;
}

function describeRequest({ versionInfo, responseNonce, errorDetail }: DiscoveryRequest): string {
  if (responseNonce === '') return `request ${versionInfo}`.trim();
  return `${errorDetail === undefined ? 'ack' : 'nack'} ${versionInfo}/${responseNonce}`;
}

interface Played extends Partial<Scenario> {
  /** When the source is unsubscribed from. */
  readonly until?: string;
  /** What it emits; undefined: that is of no interest. */
  readonly expected?: string;
}

/** What the source requests of streams, one after the other, and at which millisecond. */
function requestsOf(streams: readonly string[], { until, expected, ...scenario }: Played): readonly string[] {
  const requests: string[] = [];
  marbles(({ cold, expectObservable, flush }, scheduler) => {
    const opened = streams.map((stream) => cold(stream, SENT, new AdsStreamError('failed')));
    const events$ = source(opened, { scheduler, requests, ...scenario });
    expectObservable(expected === undefined ? events$.pipe(ignoreElements()) : events$, until).toBe(expected ?? '');
    flush();
  });
  return requests;
}

function timesOf(requests: readonly string[]): readonly number[] {
  return requests.map((line) => Number(line.split(' ')[0]));
}

/** When streams that fail or complete like this were opened, within ten minutes. */
function startsOf(streams: readonly string[], scenario: Partial<Scenario> = {}): readonly number[] {
  const requests = requestsOf(streams, { until: '600s !', ...scenario });
  return timesOf(requests.filter((line) => line.includes('request')));
}

describe('xdsRuleSource', () => {
  it('rejects invalid rules with a NACK, and emits the active ones again after a rejection, but not without one', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests: string[] = [];
      const stream = cold('c1-x-1-y-1-1-2-1-1', SENT);
      const subscribed = ' ^-----------------!';
      const expected = '   -1-x-1-x-1---2-1--';
      expectObservable(source([stream], { scheduler, requests }), subscribed).toBe(expected);
      expectSubscriptions(stream.subscriptions).toBe(subscribed);
      flush();
      expect(requests.slice(0, 4)).toEqual(['0 request', '1 ack 1/n1', '3 nack 1/nx', '5 ack 1/n1']);
    });
  });

  it('delays the NACK of a repeated response, longer each time, up to 30 s', () => {
    const stream = '  x 999ms x 59s x 59s x 59s x 59s x 59s x 59s x';
    const expected = 'x 999ms r 59s r 59s r 59s r 59s r 59s r 59s r';
    const answered = timesOf(requestsOf([stream], { until: '500s !', expected })).slice(1);
    const sent = [0, 1000, 60_001, 119_002, 178_003, 237_004, 296_005, 355_006];
    const delays = answered.map((at, index) => at - (sent[index] ?? 0));
    expect(delays).toEqual([0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  it('drops a delayed NACK when a newer response arrives, and sends the NACK of other invalid rules immediately', () => {
    const stream = '  x-x--y--y--2';
    const expected = 'x-r--x--r--2';
    const requests = requestsOf([stream], { until: '5s !', expected });
    expect(requests).toEqual(['0 request', '0 nack /nx', '5 nack /ny', '11 ack 2/n2']);
  });

  it('drops a delayed NACK when the stream ends, and sends the NACK on the next stream immediately', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests: string[] = [];
      const first = cold('x-x-|', SENT);
      const second = cold('x', SENT);
      const expected = '  x-r----r';
      expectObservable(source([first, second], { scheduler, requests }), '5s !').toBe(expected);
      expectSubscriptions(first.subscriptions).toBe('^---!');
      expectSubscriptions(second.subscriptions).toBe('-------^ 4992ms !');
      flush();
      expect(requests).toEqual(['0 request', '0 nack /nx', '7 request', '7 nack /nx']);
    });
  });

  it('rejects rules that cannot be received, and waits as after a failure', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const tooLarge = cold<AdsEvent>('c1-#', SENT, new AdsStreamError('a response is too large', true));
      const again = cold<AdsEvent>('   c--#', SENT, new AdsStreamError('a response is too large', true));
      const good = cold('           c2', SENT);
      // The stream worked, but its error would repeat immediately: the waits are 10 ms and 20 ms instead of 3 ms.
      const expected = '            -1-x 12ms r 20ms 2';
      expectObservable(source([tooLarge, again, good], { scheduler }), '60ms !').toBe(expected);
      expectSubscriptions(tooLarge.subscriptions).toBe('^--!');
      expectSubscriptions(again.subscriptions).toBe('   13ms ^--!');
      expectSubscriptions(good.subscriptions).toBe('    36ms ^ 23ms !');
    });
  });

  it('handles the newest response 100 ms after the one before, also when the server has ended the stream', () => {
    const stream = '  1xy2 96ms -3x2 50ms 3|';
    const expected = '1 99ms 2 54ms 3';
    const requests = requestsOf([stream, '-'], { until: '900ms !', expected, settle: SETTLE });
    expect(requests).toEqual(['0 request', '0 ack 1/n1', '100 ack 2/n2', '158 request']);
  });

  it('handles one response a second of a server that sends without pause', () => {
    const handled = timesOf(requestsOf(['123x'.repeat(1200)], { settle: SETTLE })).slice(1);
    expect(handled).toEqual([0, 100, 300, 700, 1500, 2500, 3500, 4500, 5500]);
  });

  it.each([
    ['four times as long as handling it took', 500, 2500],
    ['10 s at most', 5000, 15_000],
  ])('pauses after a response for %s', (_, takes, between) => {
    // Those that are handled after a pause are not the one that was accepted last, which is not loaded again.
    const stream = '1 99ms 2 99ms 3 99ms 2 99ms '.repeat(200);
    const answered = timesOf(requestsOf([stream], { settle: SETTLE, loading: takes })).slice(1, 4);
    expect(answered).toEqual([takes, takes + between, takes + 2 * between]);
  });

  it.each([
    ['warns about a server that sends nothing for 30 s', 'c 59s 1', '- 59s 1', true],
    ['does not warn about a server that has sent rules and then sends nothing', 'c1', '-1', false],
  ])('%s, and keeps the stream', (_, sent, expected, warns) => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const log = new RecordedLog();
      const stream = cold(sent, SENT);
      expectObservable(source([stream], { scheduler, log }), '60m !').toBe(expected);
      expectSubscriptions(stream.subscriptions).toBe('^ 3599999ms !');
      flush();
      const silence = 'warn the xDS server has sent no rules for 30 s: it may not know this node';
      const warnings = warns ? [silence, 'notice the xDS server has sent rules'] : [];
      expect(log.short).toEqual(['info connected to the xDS server', ...warnings]);
    });
  });

  it('counts a silent stream as working after 30 s, and a shorter one as failed', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const requests: string[] = [];
      const short = cold('c 29s |', SENT);
      const lasting = cold('c 31s |', SENT);
      expectObservable(source([short, lasting, short], { scheduler, requests }), '70s !').toBe('-');
      expectSubscriptions(lasting.subscriptions).toBe('29011ms ^ 31000ms !');
      flush();
      const [ended, lasted] = [29_001, 31_001];
      expect(requests).toEqual(['0 request', `${ended + 10} request`, `${ended + 10 + lasted + 3} request`]);
    });
  });

  it('closes the stream on unsubscribing, and reports that the connection is closed', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const connections: boolean[] = [];
      const stream = cold('c1---', SENT);
      const expected = '   -1';
      const unsubscribe = '---!';
      expectObservable(source([stream], { scheduler, connections }), unsubscribe).toBe(expected);
      expectSubscriptions(stream.subscriptions).toBe('^--!');
      flush();
      expect(connections).toEqual([true, false]);
    });
  });

  it.each<[what: string, streams: readonly string[], starts: readonly number[]]>([
    ['counts failures from 1 again after one that worked', ['#', '#', '--1--#', '#', '#'], [0, 10, 30, 38, 48, 68]],
    ['counts a completion as a failure unless the stream worked', ['|', '|', '--1--|', '1|'], [0, 10, 30, 38, 42]],
  ])('%s', (_, streams, starts) => {
    expect(startsOf([...streams, '-'])).toEqual(starts);
  });

  /** In seconds; `random` only with jitter. */
  type Backoff = { readonly factor?: number; readonly most?: number; readonly random?: number };
  it.each<[what: string, backoff: Backoff, waits: readonly number[]]>([
    ['that grows by the factor to the maximum', {}, [10, 15, 22.5, 33.75, 50.625, 60, 60]],
    ['that doubles with a factor of 1', { factor: 1 }, [10, 20, 40, 60, 60]],
    ['times a factor above 1', { factor: 3 }, [10, 30, 60, 60]],
    ['that stays the same with a factor of 0', { factor: 0 }, [10, 10, 10, 10]],
    ['of the maximum when a number overflows', { factor: 1e300 }, [10, 60, 60, 60]],
    ['of the maximum when the initial one is longer', { most: 5 }, [5, 5, 5]],
    ['from the initial to the calculated one with jitter', { random: 0.5 }, [10, 12.5, 16.25, 21.875]],
    ['of the calculated one at most with jitter', { random: 1 }, [10, 15, 22.5]],
  ])('opens a stream again after a wait %s', (_, { factor = 0.5, most = 60, random }, waits) => {
    const settings = {
      ...{ xdsClientBackoffInitialInterval: 10_000, xdsClientBackoffMaxInterval: most * 1000 },
      ...{ xdsClientBackoffRandomFactor: factor, xdsClientBackoffJitter: random !== undefined },
    };
    let at = 0;
    const starts = startsOf(['#'], { settings, random: random ?? 0 });
    expect(starts.slice(1, waits.length + 1)).toEqual(waits.map((wait) => (at += wait * 1000)));
  });

  it('opens no stream after unsubscribing during a wait', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const failing = cold('#', SENT, new AdsStreamError('failed'));
      expectObservable(source([failing], { scheduler }), '-----!').toBe('');
      expectSubscriptions(failing.subscriptions).toBe('(^!)');
    });
  });
});
