import { type Mapping, type MappingTable, type Observer, type Template, globPattern } from './mapping';

/** The buckets of a histogram that specifies none: the default of every Prometheus client library, in seconds. */
const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The summary of a timer that specifies nothing else. */
export const DEFAULT_SUMMARY: Observer = {
  kind: 'summary',
  buckets: DEFAULT_BUCKETS,
  quantiles: [0.5, 0.9, 0.99],
  maxAge: 10 * 60_000,
};

/** From 50 µs, since a decision takes microseconds; includes the buckets that the Go service's dashboards use. */
const RESPONSE_TIME_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, ...DEFAULT_BUCKETS];

/** The statistics of rules that have labels, with their help texts. */
const RULE_STATS = {
  near_limit: 'Hits above the near limit ratio, but within the limit.',
  over_limit: 'Hits over the limit.',
  total_hits: 'All hits.',
  within_limit: 'Hits within the limit.',
  shadow_mode: 'Hits over the limit that shadow mode let pass.',
  asks: 'Calls that asked whether anything is left.',
  asks_denied: 'Calls that asked, and were denied.',
  blocks: 'Blocks that calls have started.',
};

/**
 * The mapping without PULLMETRICS_MAPPER_YAML: the metrics of docs/statistics.md, under the names and with the labels
 * of the Go service. It adds up the rules whose first two key levels are equal; here, `key3` holds all levels from the
 * third on, and `window` distinguishes the limits of a rule, so that each has a series.
 *
 * @param asMilliseconds exports response times in milliseconds, the unit before it became seconds, under the same
 * metric name
 */
export function builtInMapping(asMilliseconds: boolean): MappingTable {
  return {
    mappings: [...Object.entries(RULE_STATS).flatMap(ruleMappings), ...serviceMappings(asMilliseconds)],
    unmapped: DEFAULT_SUMMARY,
    isMostSpecificFirst: false,
    hasWindowLabel: true,
  };
}

function ruleMappings([stat, help]: readonly [string, string]): readonly Mapping[] {
  const name = `ratelimit_service_rate_limit_${stat}`;
  const [domain, key1, key2, key3] = [group(1), group(2), group(3), group(4)];
  function deeper(levels: string): RegExp {
    // With the flag `s`, since the text of a request may contain the line separators U+2028 and U+2029.
    return new RegExp(`^ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.${levels}\\.${stat}$`, 'su');
  }
  return [
    counter(`ratelimit.service.rate_limit.*.*.${stat}`, name, { help, labels: { domain, key1 } }),
    // Prometheus reads an empty label as an absent one, and two series must not be the same: a dot at the end of a
    // value stays.
    counter(deeper('([^.]+\\.?)'), name, { help, labels: { domain, key1, key2 } }),
    counter(deeper('([^.]*)\\.(.+)'), name, { help, labels: { domain, key1, key2, key3 } }),
  ];
}

function serviceMappings(asMilliseconds: boolean): readonly Mapping[] {
  return [
    counter('ratelimit.service.call.should_rate_limit.*', 'ratelimit_service_should_rate_limit_error', {
      help: 'Calls that failed, by the kind of error.',
      labels: { err_type: group(1) },
    }),
    counter('ratelimit_server.*.total_requests', 'ratelimit_service_total_requests', {
      help: 'Calls of a gRPC method.',
      labels: { grpc_method: group(1) },
    }),
    {
      ...counter('ratelimit_server.*.response_time', 'ratelimit_service_response_time_seconds', {
        help: `Time from a call to its answer, in ${asMilliseconds ? 'milliseconds' : 'seconds'}.`,
        labels: { grpc_method: group(1) },
      }),
      type: 'observer',
      observer: {
        ...DEFAULT_SUMMARY,
        kind: 'histogram',
        buckets: asMilliseconds ? RESPONSE_TIME_BUCKETS.map((bound) => bound * 1000) : RESPONSE_TIME_BUCKETS,
      },
      scale: asMilliseconds ? 1 : 0.001,
    },
    counter('ratelimit.service.config_load_success', 'ratelimit_service_config_load_success', {
      help: 'Loads of rules that are good.',
    }),
    counter('ratelimit.service.config_load_error', 'ratelimit_service_config_load_error', {
      help: 'Loads of rules that were refused.',
    }),
  ];
}

/** What a group has matched. */
function group(number: number): Template {
  return [{ written: `$${number}`, group: number }];
}

/**
 * The mapping of counters to the metric of a name.
 *
 * @param match a glob or a regular expression
 */
function counter(
  match: string | RegExp,
  name: string,
  { help, labels = {} }: { readonly help: string; readonly labels?: Mapping['labels'] },
): Mapping {
  const pattern = typeof match === 'string' ? { match: globPattern(match), glob: match } : { match, glob: undefined };
  const defaults = { isDropped: false, honorLabels: false, observer: DEFAULT_SUMMARY, scale: 1 };
  return { type: 'counter', ...pattern, name: [name], help, labels, ...defaults };
}
