import { builtInMapping } from '../../../../src/sinks/statistics/mapping/built-in-mapping';
import { Mapper } from '../../../../src/sinks/statistics/mapping/mapping';
import { mappedTo } from './mapped-to';

describe('builtInMapping', () => {
  const mapper = new Mapper(builtInMapping(false));
  const rule = 'ratelimit.service.rate_limit';

  it.each(['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'])(
    'maps the statistic %s of a rule',
    (stat) => {
      const metric = `ratelimit_service_rate_limit_${stat}`;
      expect(mappedTo(mapper, `${rule}.d.k.${stat}`)).toBe(`${metric}{domain=d,key1=k}`);
      expect(mappedTo(mapper, `${rule}.d.k.l_v.${stat}`)).toBe(`${metric}{domain=d,key1=k,key2=l_v}`);
      expect(mappedTo(mapper, `${rule}.d.k.l.m.n.${stat}`)).toBe(`${metric}{domain=d,key1=k,key2=l.m.n}`);
      const separated = 'l_v\u2028w\u2029.m\u2028';
      expect(mappedTo(mapper, `${rule}.d.k.${separated}.${stat}`)).toBe(`${metric}{domain=d,key1=k,key2=${separated}}`);
    },
  );

  it.each([
    [
      'ratelimit.service.call.should_rate_limit.redis_error',
      'ratelimit_service_should_rate_limit_error{err_type=redis_error}',
    ],
    [
      'ratelimit_server.ShouldRateLimit.total_requests',
      'ratelimit_service_total_requests{grpc_method=ShouldRateLimit}',
    ],
    ['ratelimit.service.config_load_success', 'ratelimit_service_config_load_success{}'],
    ['ratelimit.service.config_load_error', 'ratelimit_service_config_load_error{}'],
    [`${rule}.d.k.over_limit_with_local_cache`, undefined],
    [`${rule}.d.domain_not_found`, undefined],
    ['ratelimit.service.global_shadow_mode', undefined],
  ])('maps %s to %s', (name, metric) => {
    expect(mappedTo(mapper, name)).toBe(metric);
  });

  it('maps response times to a histogram in seconds, or in milliseconds under the same name', () => {
    const name = 'ratelimit_server.Check.response_time';
    const metric = 'ratelimit_service_response_time_seconds{grpc_method=Check}';
    expect(mappedTo(mapper, name, 'observer')).toBe(metric);
    expect(mapper.map(name, 'observer')?.mapping).toMatchObject({
      scale: 0.001,
      observer: {
        kind: 'histogram',
        buckets: [
          0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
        ],
      },
    });
    const legacy = new Mapper(builtInMapping(true));
    expect(mappedTo(legacy, name, 'observer')).toBe(metric);
    expect(legacy.map(name, 'observer')?.mapping).toMatchObject({
      scale: 1,
      observer: { buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000] },
    });
  });
});
