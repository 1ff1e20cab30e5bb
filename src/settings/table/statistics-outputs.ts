import { derived, group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { duration } from '../values/duration';
import { list, pairs } from '../values/lists';
import { listenAddress, statisticsHost } from '../values/addresses';
import { port } from '../values/numbers';
import { filePath, textLike } from '../values/text';

export const statisticsOutputSettings = group({
  title: 'Statistics outputs (statsd, DogStatsD, Prometheus)',
  note: 'Several outputs can be enabled. With none, statistics are written to standard output, one JSON object per line.',
  settings: [
    setting({
      field: 'statsFlushInterval',
      name: 'STATS_FLUSH_INTERVAL',
      type: duration('above 0'),
      default: 10_000,
      help: 'Interval at which statistics are sent.',
    }),
    setting({
      field: 'extraTags',
      name: 'EXTRA_TAGS',
      type: pairs({ separator: ':', emptyValues: 'allowed' }),
      default: {},
      help: 'Tags added to every statistic; those with an empty value are omitted.',
    }),
    setting({
      field: 'usePushstats',
      name: 'USE_PUSHSTATS',
      alias: 'USE_STATSD',
      type: boolean,
      default: derived('true unless USE_TAGGEDSTATS or USE_PULLMETRICS is true'),
      help: 'Sends statistics to statsd.',
    }),
    setting({
      field: 'pushstatsHost',
      name: 'PUSHSTATS_HOST',
      alias: 'STATSD_HOST',
      type: statisticsHost,
      default: { host: 'localhost' },
      help: 'Host or socket of statsd or DogStatsD; unix:// is a datagram socket, unixstream:// a stream socket (length-prefixed for DogStatsD).',
    }),
    setting({
      field: 'pushstatsPort',
      name: 'PUSHSTATS_PORT',
      alias: 'STATSD_PORT',
      type: port,
      default: 8125,
      help: 'Port of statsd or DogStatsD; not used with a socket.',
    }),
    setting({
      field: 'pushstatsProtocol',
      name: 'PUSHSTATS_PROTOCOL',
      alias: 'STATSD_PROTOCOL',
      type: choice({ tcp: [], udp: [] }),
      default: 'tcp',
      help: 'Protocol for statsd; DogStatsD always uses udp.',
    }),
    setting({
      field: 'useTaggedstats',
      name: 'USE_TAGGEDSTATS',
      alias: 'USE_DOG_STATSD',
      type: boolean,
      default: false,
      help: 'Sends statistics with tags to DogStatsD.',
    }),
    setting({
      field: 'taggedstatsMogrifiers',
      name: 'TAGGEDSTATS_MOGRIFIERS',
      alias: 'USE_DOG_STATSD_MOGRIFIERS',
      type: list('names'),
      default: [],
      help: 'Mogrifiers, which turn parts of names into tags; the first whose pattern matches a name is applied.',
    }),
    setting({
      field: 'usePullmetrics',
      name: 'USE_PULLMETRICS',
      alias: 'USE_PROMETHEUS',
      type: boolean,
      default: false,
      help: 'Serves metrics for Prometheus to scrape.',
    }),
    setting({
      field: 'pullmetricsAddr',
      name: 'PULLMETRICS_ADDR',
      alias: 'PROMETHEUS_ADDR',
      type: listenAddress,
      default: { host: '0.0.0.0', port: 9090 },
      help: 'Address of the metrics listener.',
    }),
    setting({
      field: 'pullmetricsPath',
      name: 'PULLMETRICS_PATH',
      alias: 'PROMETHEUS_PATH',
      type: textLike(/^\/[^\s?#]*$/, 'path that begins with /'),
      default: '/metrics',
      help: 'HTTP path of the metrics.',
    }),
    setting({
      field: 'pullmetricsMapperYaml',
      name: 'PULLMETRICS_MAPPER_YAML',
      alias: 'PROMETHEUS_MAPPER_YAML',
      type: filePath,
      default: undefined,
      help: 'YAML file that maps statistics to Prometheus metrics, instead of the built-in mapping.',
    }),
    setting({
      field: 'pullmetricsResponseTimeAsMilliseconds',
      name: 'PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS',
      alias: 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
      type: boolean,
      default: false,
      help: 'Reports response times in milliseconds instead of seconds in the built-in mapping.',
    }),
  ],
  families: [
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_PATTERN',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_PATTERN',
      allowed: 'regular expression',
      defaultText: 'required',
      help: 'Pattern of the statistic names to which this mogrifier applies; <NAME> is its name in upper case.',
    },
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_NAME',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_NAME',
      allowed: 'text',
      defaultText: 'required',
      help: 'Name to send instead; $1, $2 are the capture groups of the pattern.',
    },
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_TAGS',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_TAGS',
      allowed: 'list of key:value',
      defaultText: 'none',
      help: 'Tags to send with that name; values may contain $1, $2.',
    },
  ],
});
