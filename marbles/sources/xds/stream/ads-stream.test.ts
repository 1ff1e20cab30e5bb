import { type Observable, map, timer } from 'rxjs';
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

/** A talk in which looking at a response takes 5 ms; emits the versions that come into force, and notes the answers. */
function slowTalk(stream: Observable<AdsEvent>, scheduler: Parameters<typeof adsStream>[2], answers: string[] = []) {
  const ruleset = rulesetOf('shop');
  const agreement = new SotwState({
    node: { id: 'node', metadata: {} },
    source: 'xDS server xds:1',
    load: () => timer(5, scheduler).pipe(map(() => ({ ruleset, warnings: [] }))),
  });
  function note({ responseNonce }: DiscoveryRequest) {
    return answers.push(responseNonce);
  }
  function open(requests$: Observable<DiscoveryRequest>) {
    requests$.subscribe(note);
    return stream;
  }
  return adsStream(open, agreement, scheduler).pipe(
    map((event) =>
      event.kind === 'handled' && event.event?.kind === 'loaded' ? event.event.origin.version : event.kind,
    ),
  );
}

describe('responses that come while one is looked at', () => {
  it('do not keep it from coming into force, and only the newest of them is looked at then', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const answers: string[] = [];
      const stream = cold('1-2-3-4-5', SENT);
      const expected = '   -----1----3----5';
      expectObservable(slowTalk(stream, scheduler, answers), '20ms !').toBe(expected);
      flush();
      expect(answers).toEqual(['', 'n1', 'n3', 'n5']);
    });
  });
});

describe('a stream that ends', () => {
  it('in order lets what is looked at come to its end, and ends then', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const stream = cold('1-|', SENT);
      const expected = '   -----(1|)';
      expectObservable(slowTalk(stream, scheduler)).toBe(expected);
    });
  });

  it('in failure takes what is looked at along', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const stream = cold('1-#', SENT);
      const expected = '   --#';
      expectObservable(slowTalk(stream, scheduler)).toBe(expected);
    });
  });
});
