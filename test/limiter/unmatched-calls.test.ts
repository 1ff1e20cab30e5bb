import { UnmatchedCalls } from '../../src/limiter/unmatched-calls';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf, unlimited } from '../support/data/rules';
import { TestService } from '../support/data/service';
import { unitByName } from '../../src/rules/unit';

// The beginning of an hour.
const NOW = 1_699_920_000_000;
const RULES: readonly RuleSketch[] = [
  { key: 'user', value: 'anna', rateLimit: limit(1, 'MINUTE') },
  { key: 'free', rateLimit: unlimited() },
  { key: 'exempt' },
  { key: 'parent', descriptors: [{ key: 'child', rateLimit: limit(1, 'MINUTE') }] },
];

const services: TestService[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

function serve() {
  const reported: string[] = [];
  const unmatched = new UnmatchedCalls(({ domain, descriptors }) => {
    const [first] = descriptors;
    reported.push(`${domain.slice(0, 20)} ${first?.entries.map(({ key }) => key.slice(0, 20)).join(',')}`);
  });
  const service = new TestService(rulesetOf('shop', ...RULES), { unmatched }, NOW);
  services.push(service);
  return {
    service,
    reported,
    call: (...of: Parameters<typeof request>) => service.decide(request(...of)),
    /** Calls in the next second. */
    callLater: (...of: Parameters<typeof request>) => {
      service.now += 1000;
      return service.decide(request(...of));
    },
  };
}

describe('calls to which no rule applies', () => {
  it('are counted, once per call', () => {
    const { service, call } = serve();
    call('shop', ['user=ben', 'other=x']);
    call('shop', ['parent=x']);
    call('shop', ['user=anna,plan=free']);
    call('nowhere', ['user=anna', 'user=ben']);
    expect(service.moved()).toEqual({
      'ratelimit.service.no_match': 3,
      'ratelimit.service.unknown_domain': 1,
      'nowhere.domain_not_found': 2,
    });
  });

  it.each([
    ['one descriptor matches a limit', ['other=x', 'user=anna']],
    [
      'a descriptor has a limit of its own',
      [descriptor('x=y', { limit: { requestsPerUnit: 1, unit: unitByName('DAY') } })],
    ],
    ['a rule exempts it', ['exempt=x']],
    ['a rule is unlimited', ['free=x']],
  ])('do not include a call of which %s', (_, descriptors) => {
    const { service, reported, call } = serve();
    call('shop', descriptors);
    expect(service.moved()).not.toHaveProperty('ratelimit.service.no_match');
    expect(reported).toEqual([]);
  });

  it('are reported once per domain and keys, whatever the values', () => {
    const { reported, callLater } = serve();
    callLater('shop', ['user=ben']);
    callLater('shop', ['user=eva']);
    callLater('shop', ['user=eva,plan=x']);
    callLater('nowhere', ['user=eva']);
    callLater('nowhere', ['user=ben']);
    expect(reported).toEqual(['shop user', 'shop user,plan', 'nowhere user']);
  });

  it('are examined once per second', () => {
    const { reported, call, callLater } = serve();
    call('shop', ['a=1']);
    call('shop', ['b=1']);
    expect(reported).toEqual(['shop a']);
    callLater('shop', ['b=1']);
    expect(reported).toEqual(['shop a', 'shop b']);
  });

  it('are reported at most five times per minute', () => {
    const { service, reported, callLater } = serve();
    for (let second = 0; second < 50; second += 1) callLater('shop', [`key${second}=x`]);
    expect(reported).toHaveLength(5);
    service.now += 60_000;
    callLater('shop', ['another=x']);
    expect(reported).toHaveLength(6);
  });

  it('are reported again in the next hour, and with new rules', () => {
    const { service, reported, callLater } = serve();
    callLater('shop', ['a=1']);
    service.now += 60_000;
    callLater('shop', ['a=1']);
    expect(reported).toHaveLength(1);
    service.now += 3_600_000;
    callLater('shop', ['a=1']);
    expect(reported).toHaveLength(2);
    service.ruleset = rulesetOf('shop', ...RULES);
    callLater('shop', ['a=1']);
    expect(reported).toHaveLength(3);
  });

  it('are remembered in bounded number: further ones are not reported before the next hour', () => {
    const { service, reported } = serve();
    for (let minute = 0; minute < 59; minute += 1) {
      for (let each = 0; each < 5; each += 1) {
        service.decide(request(`${'x'.repeat(10_000)}${minute}`, [`key${minute}-${each}=x`]));
        service.now += 1000;
      }
      service.now += 55_000;
    }
    expect(reported).toHaveLength(100);
  });
});
