import type { Mapping, MappingTable, Observer } from './mapping';

/** The buckets of a histogram that names none, as every client library of Prometheus has them; made for seconds. */
export const USUAL_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const MAX_AGE = 10 * 60_000;

/** The summary of a timer that nothing else is said of. */
export const USUAL_SUMMARY: Observer & { readonly kind: 'summary' } = {
  kind: 'summary',
  quantiles: [{ share: 0.5 }, { share: 0.9 }, { share: 0.99 }],
  maxAge: MAX_AGE,
};

/** From 50 µs on, as decisions are made in microseconds; those of the Go service's dashboards are among them. */
const RESPONSE_TIME_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, ...USUAL_BUCKETS];

const RULE_STATS = ['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'];
const ERRORS = 'Calls that failed, by the kind of error.';
const HELP: Readonly<Record<string, string>> = {
  near_limit: 'Hits above the near limit ratio, but within the limit.',
  over_limit: 'Hits over the limit.',
  total_hits: 'All hits.',
  within_limit: 'Hits within the limit.',
  shadow_mode: 'Hits over the limit that shadow mode let pass.',
};

/**
 * The mapping of document 1, section 6. A rule of more than two key levels has all from the second on in `key2`.
 *
 * @param asMilliseconds keeps the unit that response times had before they became seconds; the metric keeps its name
 */
export function builtInMapping(asMilliseconds: boolean): MappingTable {
  const rules = RULE_STATS.flatMap((stat) => {
    const name = `ratelimit_service_rate_limit_${stat}`;
    return [
      counter(`ratelimit.service.rate_limit.*.*.${stat}`, name, HELP[stat], { domain: '$1', key1: '$2' }),
      {
        ...counter('', name, HELP[stat], { domain: '$1', key1: '$2', key2: '$3' }),
        match: new RegExp(`^ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.(.+)\\.${stat}$`, 'u'),
      },
    ];
  });
  const service = 'ratelimit.service';
  const mappings = [
    ...rules,
    counter(`${service}.call.should_rate_limit.*`, 'ratelimit_service_should_rate_limit_error', ERRORS, {
      err_type: '$1',
    }),
    counter('ratelimit_server.*.total_requests', 'ratelimit_service_total_requests', 'Calls of a gRPC method.', {
      grpc_method: '$1',
    }),
    {
      ...counter('ratelimit_server.*.response_time', 'ratelimit_service_response_time_seconds', undefined, {
        grpc_method: '$1',
      }),
      type: 'observer' as const,
      help: `Time from a call to its answer, in ${asMilliseconds ? 'milliseconds' : 'seconds'}.`,
      observer: {
        kind: 'histogram' as const,
        buckets: asMilliseconds ? RESPONSE_TIME_BUCKETS.map((bound) => bound * 1000) : RESPONSE_TIME_BUCKETS,
      },
      scale: asMilliseconds ? 1 : 0.001,
    },
    counter(`${service}.config_load_success`, 'ratelimit_service_config_load_success', 'Loads of rules that are good.'),
    counter(`${service}.config_load_error`, 'ratelimit_service_config_load_error', 'Loads of rules that were refused.'),
  ];
  return { mappings, unmapped: USUAL_SUMMARY, isByExactness: false };
}

function counter(glob: string, name: string, help: string | undefined, labels: Mapping['labels'] = {}): Mapping {
  return {
    match: glob.split('.'),
    type: 'counter',
    isDropped: false,
    name,
    help,
    labels,
    honorLabels: false,
    observer: USUAL_SUMMARY,
    scale: 1,
  };
}
