import { type Observable, type SchedulerLike, map, timer, using } from 'rxjs';
import { type DiscoveryRequest, DiscoveryResponse } from '../../../../src/gen/envoy/service/discovery/v3/discovery';
import { SotwState } from '../../../../src/sources/xds/stream/sotw-state';
import { type AdsEvent, RULES_TYPE_URL } from '../../../../src/sources/xds/ads';
import { adsStream } from '../../../../src/sources/xds/stream/ads-stream';
import { simpleResource } from '../../../../test/support/data/rule-resources';
import { rulesetOf } from '../../../../test/support/data/rules';
import { marbles } from '../../../support/marbles';

function response(versionInfo: string): AdsEvent {
  return {
    kind: 'response',
    message: DiscoveryResponse.encode({
      versionInfo,
      resources: [simpleResource('shop', Number(versionInfo))],
      canary: false,
      typeUrl: RULES_TYPE_URL,
      nonce: `n${versionInfo}`,
    }).finish(),
  };
}
const SENT = Object.fromEntries(['1', '2', '3', '4', '5'].map((version) => [version, response(version)]));

/** A stream on which loading a response takes 5 ms: emits the versions that become active, and records the nonces of the replies. */
function slowStream(stream: Observable<AdsEvent>, scheduler: SchedulerLike, nonces: string[] = []) {
  const ruleset = rulesetOf('shop');
  const state = new SotwState({
    node: { id: 'node', metadata: {} },
    source: 'xDS server xds:1',
    load: () => timer(5, scheduler).pipe(map(() => ({ ruleset, warnings: [] }))),
  });
  function open(requests$: Observable<DiscoveryRequest>) {
    return using(
      () => requests$.subscribe(({ responseNonce }) => nonces.push(responseNonce)),
      () => stream,
    );
  }
  return adsStream(open, state, scheduler).pipe(
    map((event) =>
      event.kind === 'handled' && event.event?.kind === 'loaded' ? event.event.origin.version : event.kind,
    ),
  );
}

describe('adsStream', () => {
  it('handles one response after the other, and of those that arrive meanwhile only the newest', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const nonces: string[] = [];
      const stream = cold('1-2-3-4-5', SENT);
      const expected = '   -----1----3----5';
      expectObservable(slowStream(stream, scheduler, nonces), '20ms !').toBe(expected);
      expectSubscriptions(stream.subscriptions).toBe('         ^ 19ms !');
      flush();
      expect(nonces).toEqual(['', 'n1', 'n3', 'n5']);
    });
  });

  it('completes with the server, after the response in progress has been handled', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const stream = cold('1-|', SENT);
      const subscribed = ' ^-!';
      const expected = '   -----(1|)';
      expectObservable(slowStream(stream, scheduler)).toBe(expected);
      expectSubscriptions(stream.subscriptions).toBe(subscribed);
    });
  });

  it('fails with the stream, which drops the response in progress', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const stream = cold('1-#', SENT);
      const subscribed = ' ^-!';
      const expected = '   --#';
      expectObservable(slowStream(stream, scheduler)).toBe(expected);
      expectSubscriptions(stream.subscriptions).toBe(subscribed);
    });
  });
});
