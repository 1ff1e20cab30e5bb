import { listenAddress, statisticsHost } from '../values/addresses';
import { interval } from '../values/duration';
import { list, mogrifierTags, otlpHeaders, pairs } from '../values/lists';
import { count, fraction, remotePort } from '../values/numbers';
import { anyText, boolean, choice, filePath, httpPath } from '../values/value-type';
import { anyOf, is, isNot, isNotSet, matches } from './condition';
import { derived, group, noDefault, setting } from './setting';

const statisticsSettings = group({
  title: 'Statistics',
  settings: [
    setting('STATS_MAX_RUNTIME_KEYS', count, 10_000)`
      Maximum number of statistics keys with values from requests; further ones count under their rule. A key
      takes about 0.5 KB, with Prometheus or OTLP 1 KB.`,
    setting('DISABLE_STATS', boolean, false)`Sends no statistics, regardless of the outputs below.`,
  ],
});

const PUSHED = is('USE_PUSHSTATS', 'true');
/** The condition of the settings of mogrifiers. */
export const TAGGED_OUTPUT = is('USE_TAGGEDSTATS', 'true');
const PUSHED_OR_TAGGED = anyOf('with USE_PUSHSTATS=true or USE_TAGGEDSTATS=true', [PUSHED, TAGGED_OUTPUT]);
const PULLED = is('USE_PULLMETRICS', 'true');
const OTLP = is('USE_OTLP_METRICS', 'true');
/** The outputs that have the names and labels of Prometheus. */
const MAPPED = anyOf('with USE_PULLMETRICS=true or USE_OTLP_METRICS=true', [PULLED, OTLP]);
const BUILT_IN_MAPPING = isNotSet('PULLMETRICS_MAPPER_YAML');
/** Prometheus reads statistics at an interval of its own. */
const NOT_ONLY_PULLED = [PUSHED, TAGGED_OUTPUT, OTLP, isNot('USE_PULLMETRICS', 'true')];
const FLUSHED = anyOf('with an output other than USE_PULLMETRICS', NOT_ONLY_PULLED);
const TO_HOST = matches('PUSHSTATS_HOST', /^(?!unix)/, ['without a socket in PUSHSTATS_HOST', 'is a socket']);

const UNLESS_OTHERS = derived('true unless USE_TAGGEDSTATS, USE_PULLMETRICS or USE_OTLP_METRICS is true', (stateOf) =>
  ['USE_TAGGEDSTATS', 'USE_PULLMETRICS', 'USE_OTLP_METRICS'].every((name) => stateOf(name).value !== 'true'),
);

const REQUIRED = noDefault('required');

const statisticsOutputSettings = group({
  title: 'Statistics outputs (statsd, DogStatsD, Prometheus, OpenTelemetry)',
  note: 'Several can be enabled. With none, statistics are on standard output, one JSON object per line.',
  requires: [isNot('DISABLE_STATS', 'true')],
  settings: [
    setting('STATS_FLUSH_INTERVAL', interval(100), 10_000, FLUSHED)`Interval at which statistics are sent.`,
    setting('EXTRA_TAGS', pairs({ separator: ':', emptyValues: 'allowed' }), {})`
      Tags added to every statistic; those with an empty value are omitted.`,
    setting('USE_PUSHSTATS', boolean, UNLESS_OTHERS)`Sends statistics to statsd.`,
    setting('PUSHSTATS_HOST', statisticsHost, { host: 'localhost' }, PUSHED_OR_TAGGED)`
      Host or socket of statsd or DogStatsD; unix:// is a datagram socket, unixstream:// a stream socket (DogStatsD:
      length-prefixed).`,
    setting('PUSHSTATS_PORT', remotePort, 8125, PUSHED_OR_TAGGED, TO_HOST)`Port of statsd or DogStatsD.`,
    setting('PUSHSTATS_PROTOCOL', choice({ tcp: [], udp: [] }), 'tcp', PUSHED, TO_HOST)`
      Protocol for statsd; DogStatsD always uses udp.`,
    setting('USE_TAGGEDSTATS', boolean, false)`Sends statistics with tags to DogStatsD.`,
    setting('TAGGEDSTATS_MOGRIFIERS', list('names'), [], TAGGED_OUTPUT)`
      Mogrifiers, which turn parts of names into tags; of each name, the first that matches.`,
    setting('USE_PULLMETRICS', boolean, false)`Serves metrics for Prometheus to scrape.`,
    setting('PULLMETRICS_ADDR', listenAddress, { host: '0.0.0.0', port: 9090 }, PULLED)`
      Address of the metrics listener.`,
    setting('PULLMETRICS_PATH', httpPath, '/metrics', PULLED)`HTTP path of the metrics.`,
    setting('PULLMETRICS_MAPPER_YAML', filePath, undefined, MAPPED)`
      YAML file that maps statistics to metrics, instead of the built-in mapping.`,
    setting('PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS', boolean, false, MAPPED, BUILT_IN_MAPPING)`
      Response times in milliseconds instead of seconds.`,
    setting('USE_OTLP_METRICS', boolean, false)`
      Exports statistics by OTLP, with the names and labels of Prometheus.`,
  ],
  families: [
    setting('TAGGEDSTATS_MOGRIFIER_<NAME>_PATTERN', anyText('regular expression'), REQUIRED, TAGGED_OUTPUT)`
      Pattern of the names to which it applies; <NAME> is that of the mogrifier in upper case.`,
    setting('TAGGEDSTATS_MOGRIFIER_<NAME>_NAME', anyText(), REQUIRED, TAGGED_OUTPUT)`
      Name to send instead; $1, $2 are capture groups of the pattern.`,
    setting('TAGGEDSTATS_MOGRIFIER_<NAME>_TAGS', mogrifierTags, noDefault('none'), TAGGED_OUTPUT)`
      Tags to send with that name; values may contain $1, $2.`,
  ],
});

const TRACED = is('TRACING_ENABLED', 'true');
const EXPORTED = anyOf('with TRACING_ENABLED=true or USE_OTLP_METRICS=true', [TRACED, OTLP]);

const traceSettings = group({
  title: 'Traces (OpenTelemetry)',
  note: 'Spans are exported by OTLP; the standard OTEL_EXPORTER_OTLP_* variables apply, too.',
  settings: [
    setting('TRACING_ENABLED', boolean, false)`Exports spans.`,
    setting('TRACING_EXPORTER_PROTOCOL', choice({ http: [], grpc: [] }), 'http', TRACED)`
      Protocol of the OTLP exporter.`,
    setting('TRACING_SERVICE_NAME', anyText(), 'RateLimit', EXPORTED)`Service name in spans and OTLP metrics.`,
    setting('TRACING_SERVICE_NAMESPACE', anyText(), '', EXPORTED)`Service namespace in spans and OTLP metrics.`,
    setting('TRACING_SERVICE_INSTANCE_ID', anyText(), noDefault('random UUID (version 4)'), EXPORTED)`
      Service instance id in spans and OTLP metrics.`,
    setting('TRACING_SAMPLING_RATE', fraction, 1, TRACED)`
      Fraction of traces to sample where the caller has not decided.`,
  ],
});

const OTLP_PROTOCOL = choice({ 'http/protobuf': [], 'http/json': [], grpc: [] });

const TEMPORALITY = choice({ cumulative: [], delta: [], lowmemory: [] });

const otlpExporterSettings = group({
  title: 'OTLP exporters (OpenTelemetry)',
  note: 'Standard variables of OpenTelemetry, with TRACING_ENABLED=true or USE_OTLP_METRICS=true.',
  settings: [
    setting('OTEL_EXPORTER_OTLP_HEADERS', otlpHeaders, undefined)`Headers to send to the collector.`,
    setting('OTEL_EXPORTER_OTLP_TRACES_HEADERS', otlpHeaders, undefined)`
      Headers to send with traces; override those of the same name above.`,
    setting('OTEL_EXPORTER_OTLP_METRICS_HEADERS', otlpHeaders, undefined)`
      Headers to send with metrics; override those of the same name above.`,
    setting('OTEL_EXPORTER_OTLP_PROTOCOL', OTLP_PROTOCOL, 'http/protobuf')`
      Protocol for metrics; that for traces is TRACING_EXPORTER_PROTOCOL.`,
    setting('OTEL_EXPORTER_OTLP_METRICS_PROTOCOL', OTLP_PROTOCOL, noDefault('OTEL_EXPORTER_OTLP_PROTOCOL'))`
      Protocol for metrics.`,
    setting('OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE', TEMPORALITY, 'cumulative')`
      Values since the start or since the last export; lowmemory: only histograms since the last export.`,
  ],
});

export const outputGroups = [
  statisticsSettings,
  statisticsOutputSettings,
  traceSettings,
  otlpExporterSettings,
] as const;
