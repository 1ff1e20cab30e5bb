import { HeavyHitters } from '../../src/limiter/heavy-hitters';
import { Code } from '../../src/limiter/verdict';
import { unitByName } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit } from '../support/data/rules';
import { NOW, call, codes, overall, perMinute, remaining, serve } from './serve';

const PREFIX = { ipv4: 24, ipv6: 64 };
const BY_NETWORK: RuleSketch = { key: 'ip', addressPrefix: PREFIX, rateLimit: perMinute(4) };
/** Notations of one network each. */
const IPV4 = ['198.51.100.7', '::ffff:198.51.100.8', '198.51.100.9:51234', '::FFFF:c633:640a'];
const IPV6 = ['2001:db8:1:2::1', '2001:DB8:1:2:0:0:0:2', '[2001:db8:1:2::3]:443', '2001:0db8:0001:0002::4'];

describe('a rule with address_prefix', () => {
  it.each([
    ['IPv4', IPV4, '198.51.101.7'],
    ['IPv6', IPV6, '2001:db8:1:3::1'],
  ])('has one counter for a network of %s in any notation, and another one for the next network', (_, texts, next) => {
    const service = serve([BY_NETWORK]);
    expect(texts.flatMap((text) => remaining(call(service, `ip=${text}`)))).toEqual([3, 2, 1, 0]);
    expect(overall(service, `ip=${texts[2]}`, `ip=${next}`)).toEqual(['OVER', 'OK']);
  });

  it('counts a value that is no address as itself, and an address of full length under the key of an older version', () => {
    const service = serve([{ ...BY_NETWORK, addressPrefix: { ipv4: 32, ipv6: 64 } }]);
    const asked = request('shop', ['ip=198.51.100.7', 'ip=unknown', 'ip=::ffff:198.51.100.7']);
    const { operations } = service.limiter.begin(asked, service.ruleset, NOW);
    const keys = ['shop_ip_198.51.100.7_', 'shop_ip_unknown_', 'shop_ip_198.51.100.7_'];
    expect(operations.map(({ key }) => key)).toEqual(keys.map((key) => `${key}1699920000`));
  });

  it('matches by the text that was sent', () => {
    const exact: RuleSketch = { key: 'ip', value: '198.51.100.7', rateLimit: perMinute(0) };
    const within: RuleSketch = { key: 'ip', valueCidr: '10.0.0.0/8', addressPrefix: PREFIX, rateLimit: perMinute(1) };
    const service = serve([BY_NETWORK, exact, within]);
    expect(overall(service, 'ip=198.51.100.7', 'ip=::ffff:198.51.100.7')).toEqual(['OVER', 'OK']);
    expect(overall(service, 'ip=10.0.0.1:443', 'ip=::ffff:10.0.0.2')).toEqual(['OK', 'OVER']);
  });

  it('applies to the rules that are nested in it, and to their statistics and offenders', () => {
    const offenders = new HeavyHitters({ capacity: 10, windowSeconds: 600 });
    const path: RuleSketch = { key: 'path', detailedMetric: true, rateLimit: perMinute(1) };
    const service = serve([{ key: 'ip', addressPrefix: PREFIX, descriptors: [path] }], { offenders });
    expect(overall(service, 'ip=2001:db8::1,path=::1', 'ip=2001:db8::2,path=::1')).toEqual(['OK', 'OVER']);
    const moved = service.moved();
    expect(moved).toMatchObject({ 'shop.ip_2001_db8__/64.path___1.total_hits': 2 });
    expect(offenders.top({ limit: 9 }, Math.floor(service.now / 1000))).toMatchObject([
      { descriptor: 'ip=2001:db8::/64,path=::1', limited: 1 },
    ]);
  });

  it('is enforced for all callers of a network, or for none, with enforce_percent', () => {
    const service = serve([{ ...BY_NETWORK, rateLimit: perMinute(0), enforcePercent: 50 }]);
    const [one, other] = ['2001:db8:1:2::', '2001:db8:1:7::'].map((network) => {
      return new Set(Array.from({ length: 50 }, (_, host) => overall(service, `ip=${network}${host}`)[0]));
    });
    expect([one, other].map((found) => found?.size)).toEqual([1, 1]);
    expect(new Set([...one!, ...other!])).toEqual(new Set(['OK', 'OVER']));
  });

  it('counts by network with each of several limits, without a limit, and with a limit of the request for an algorithm', () => {
    const several = serve([{ ...BY_NETWORK, rateLimit: undefined, rateLimits: [perMinute(9), limit(1, 'HOUR')] }]);
    expect(overall(several, `ip=${IPV6[0]}`, `ip=${IPV6[1]}`)).toEqual(['OK', 'OVER']);
    const bucket = serve([{ ...BY_NETWORK, rateLimit: perMinute(9, { algorithm: 'token_bucket' }) }]);
    const own = { requestsPerUnit: 1, unit: unitByName('MINUTE') };
    const verdicts = IPV4.slice(0, 2).map((text) => call(bucket, descriptor(`ip=${text}`, { limit: own })));
    expect(verdicts.map(codes)).toEqual([['OK'], ['OVER']]);
    const plain = serve([BY_NETWORK]);
    const asSent = IPV4.slice(0, 2).map((text) => call(plain, descriptor(`ip=${text}`, { limit: own })));
    expect(asSent.map(({ overallCode }) => overallCode)).toEqual([Code.OK, Code.OK]);
  });
});
