import { EMPTY, type Observable, type SchedulerLike, defer, finalize, map } from 'rxjs';
import { type DiscoveryRequest, DiscoveryResponse } from '../../../src/gen/envoy/service/discovery/v3/discovery';
import type { Any } from '../../../src/gen/google/protobuf/any';
import { type AdsEvent, AdsStreamError, RULES_TYPE_URL } from '../../../src/sources/xds/ads';
import { xdsRuleSource } from '../../../src/sources/xds/xds-rule-source';
import type { RuleEvent } from '../../../src/streams/ports/rule-source';
import { ruleResource, simpleResource } from '../../../test/support/data/rule-resources';
import { domainConfig } from '../../../test/support/data/rules';
import { LinesLog } from '../../../test/support/data/xds-rules';
import { marbles } from '../../support/marbles';

const CONNECTED: AdsEvent = { kind: 'connected' };
function response(versionInfo: string, ...resources: Any[]): AdsEvent {
  return {
    kind: 'response',
    message: DiscoveryResponse.encode({
      versionInfo,
      resources,
      canary: false,
      typeUrl: RULES_TYPE_URL,
      nonce: `n${versionInfo}`,
    }).finish(),
  };
}

/** `c` connected; `1`, `2`, `3` good rules under that version; `0` no rules; `x` and `y` bad rules. */
const SENT: Record<string, AdsEvent> = {
  c: CONNECTED,
  0: response('0'),
  1: response('1', simpleResource('shop', 1)),
  2: response('2', simpleResource('shop', 2)),
  3: response('3', simpleResource('shop', 3)),
  x: response('x', ruleResource('shop', domainConfig('shop', { key: '' }))),
  y: response('y', ruleResource('shop', domainConfig('', { key: 'a' }))),
};

interface Scenario {
  readonly scheduler: SchedulerLike;
  readonly log?: LinesLog;
  readonly requests?: string[];
  readonly connections?: boolean[];
}

/** A source whose first stream is `streams[0]` and so on; each event is its letter, bad ones `x` and repeated bad ones `r`. */
function source(streams: readonly Observable<AdsEvent>[], { scheduler, log = new LinesLog(), ...seen }: Scenario) {
  let opened = 0;
  const { events$ } = xdsRuleSource({
    server: 'xds:1',
    connect: (requests$) =>
      defer(() => {
        const asked = requests$.subscribe((request) => seen.requests?.push(`${scheduler.now()} ${described(request)}`));
        opened += 1;
        return (streams[opened - 1] ?? streams.at(-1) ?? EMPTY).pipe(finalize(() => asked.unsubscribe()));
      }),
    node: { id: 'node', metadata: {} },
    backoff: { retryInterval: 3, initialInterval: 10, maxInterval: 60, randomFactor: 1, jitter: false },
    mergeDomainConfigs: false,
    log,
    onConnection: (stands) => seen.connections?.push(stands),
    scheduler,
  });
  return events$.pipe(map(letter));
}

function letter(event: RuleEvent): string {
  if (event.kind === 'rejected') return event.isRepeated === true ? 'r' : 'x';
  return event.origin.version;
}

function described({ versionInfo, responseNonce, errorDetail }: DiscoveryRequest): string {
  if (responseNonce === '') return `ask ${versionInfo}`.trim();
  return `${errorDetail === undefined ? 'ack' : 'nack'} ${versionInfo}/${responseNonce}`;
}

describe('rules from a server', () => {
  it('good, bad, good: the bad ones are refused and change nothing, the next good ones take over', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests: string[] = [];
      const stream = cold('c1--x--2--', SENT);
      const expected = '   -1--x--2--';
      expectObservable(source([stream], { scheduler, requests }), '----------!').toBe(expected);
      flush();
      expect(requests).toEqual(['0 ask', '1 ack 1/n1', '4 nack 1/nx', '7 ack 2/n2']);
    });
  });

  it('flapping: what comes back after a rejection is told again, what comes back without one is not', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const stream = cold('c1-x-1-y-1-1-2-1-1', SENT);
      const expected = '   -1-x-1-x-1---2-1--';
      expectObservable(source([stream], { scheduler }), '------------------!').toBe(expected);
    });
  });

  it('no resources: the rules are gone', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const stream = cold('c1-0-1', SENT);
      const expected = '   -1-0-1';
      expectObservable(source([stream], { scheduler }), '------!').toBe(expected);
    });
  });

  it('a server that is away at the start is tried until it is there', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const log = new LinesLog();
      const away = cold<AdsEvent>('#', {}, new AdsStreamError('UNAVAILABLE: nobody there'));
      const there = cold('         c1', SENT);
      // It is tried at 0, 10 and 30 ms.
      const expected = '           30ms -1';
      expectObservable(source([away, away, there], { scheduler, log }), '40ms !').toBe(expected);
      flush();
      expect(log.lines).toEqual([
        'warn no stream from the xDS server; keeping the active rules and retrying: UNAVAILABLE: nobody there',
        'debug still no stream from the xDS server: UNAVAILABLE: nobody there',
        'info connected to the xDS server',
      ]);
    });
  });

  it.each([
    ['sends the rules again', 'c1--2'],
    ['is silent', '            c---2'],
  ])('a server that comes back with the same version and %s: nothing is reloaded', (_, again) => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests: string[] = [];
      const first = cold('c1-|', SENT);
      const second = cold(again, SENT);
      // The retry interval is 3 ms.
      const expected = '  -1--------2';
      expectObservable(source([first, second], { scheduler, requests }), '-----------!').toBe(expected);
      flush();
      expect(requests.slice(0, 3)).toEqual(['0 ask', '1 ack 1/n1', '6 ask 1']);
    });
  });

  it('a refusal of what is sent again and again waits longer each time, up to half a minute', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests: string[] = [];
      const stream = cold('x 999ms x 59s x 59s x 59s x 59s x 59s x 59s x', SENT);
      const expected = '   x 999ms r 59s r 59s r 59s r 59s r 59s r 59s r';
      expectObservable(source([stream], { scheduler, requests }), '500s !').toBe(expected);
      flush();
      const answered = requests.slice(1).map((line) => Number(line.split(' ')[0]));
      const sent = [0, 1000, 60_001, 119_002, 178_003, 237_004, 296_005, 355_006];
      expect(answered.map((at, index) => at - (sent[index] ?? 0))).toEqual([
        0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
      ]);
    });
  });

  it('a refusal that waits is left out when something newer comes, and other bad rules are refused at once', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests: string[] = [];
      const stream = cold('x-x--y--y--2', SENT);
      const expected = '   x-r--x--r--2';
      expectObservable(source([stream], { scheduler, requests }), '5s !').toBe(expected);
      flush();
      expect(requests).toEqual(['0 ask', '0 nack /nx', '5 nack /ny', '11 ack 2/n2']);
    });
  });

  it('a refusal that waits is left out when the stream ends, and the same on the next stream is refused at once', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests: string[] = [];
      const first = cold('x-x-|', SENT);
      const second = cold('x', SENT);
      const expected = '  x-r----r';
      expectObservable(source([first, second], { scheduler, requests }), '5s !').toBe(expected);
      flush();
      expect(requests).toEqual(['0 ask', '0 nack /nx', '7 ask', '7 nack /nx']);
    });
  });

  it('rules that cannot be received are told as rejected, once as new, and are waited for as after a failure', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const tooLarge = cold<AdsEvent>('c1-#', SENT, new AdsStreamError('a response is too large', true));
      const again = cold<AdsEvent>('   c--#', SENT, new AdsStreamError('a response is too large', true));
      const good = cold('           c2', SENT);
      // The stream worked, but what ended it would come again at once: 10 ms and 20 ms instead of 3.
      const expected = '            -1-x 12ms r 20ms 2';
      expectObservable(source([tooLarge, again, good], { scheduler }), '60ms !').toBe(expected);
    });
  });

  it('a server that is silent from the start is warned about after half a minute, and kept', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const log = new LinesLog();
      const stream = cold('c 59s 1', SENT);
      const expected = '   - 59s 1';
      expectObservable(source([stream], { scheduler, log }), '90s !').toBe(expected);
      expectSubscriptions(stream.subscriptions).toBe('^ 89999ms !');
      flush();
      expect(log.lines).toEqual([
        'info connected to the xDS server',
        'warn the xDS server has sent no rules for 30 s: it may not know this node',
      ]);
    });
  });

  it('a server that has sent rules may be silent for ever', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const log = new LinesLog();
      expectObservable(source([cold('c1', SENT)], { scheduler, log }), '60m !').toBe('-1');
      flush();
      expect(log.lines).toEqual(['info connected to the xDS server']);
    });
  });

  it('a silent stream that lasted half a minute has worked, a shorter one has failed', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const requests: string[] = [];
      const short = cold('c 29s |', SENT);
      const lasting = cold('c 31s |', SENT);
      expectObservable(source([short, lasting, short], { scheduler, requests }), '70s !').toBe('-');
      flush();
      const [ended, lasted] = [29_001, 31_001];
      expect(requests).toEqual(['0 ask', `${ended + 10} ask`, `${ended + 10 + lasted + 3} ask`]);
    });
  });

  it('whoever stops listening ends the stream, and is told that the connection is gone', () => {
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
});
