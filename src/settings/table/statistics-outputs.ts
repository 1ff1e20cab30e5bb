import { anyOf, is, isNot, isNotSet, matches } from './condition';
import { derived, group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { timerDuration } from '../values/duration';
import { list, pairs } from '../values/lists';
import { listenAddress, statisticsHost } from '../values/addresses';
import { port } from '../values/numbers';
import { filePath, textLike } from '../values/text';

/** The condition of the settings of mogrifiers. */
export const TAGGED_OUTPUT = is('USE_TAGGEDSTATS', 'true');
const PULLED = is('USE_PULLMETRICS', 'true');
const PUSHED_OR_TAGGED = anyOf('with USE_PUSHSTATS=true or USE_TAGGEDSTATS=true', [
  is('USE_PUSHSTATS', 'true'),
  TAGGED_OUTPUT,
]);
/** Prometheus reads statistics at an interval of its own. */
const FLUSHED = anyOf('with an output other than USE_PULLMETRICS', [
  is('USE_PUSHSTATS', 'true'),
  TAGGED_OUTPUT,
  isNot('USE_PULLMETRICS', 'true'),
]);
const TO_HOST = matches('PUSHSTATS_HOST', /^(?!unix)/, {
  text: 'without a socket in PUSHSTATS_HOST',
  isOtherwise: 'is a socket',
});

export const statisticsOutputSettings = group({
  title: 'Statistics outputs (statsd, DogStatsD, Prometheus)',
  note: 'Several outputs can be enabled. With none, statistics are written to standard output, one JSON object per line.',
  requires: [isNot('DISABLE_STATS', 'true')],
  settings: [
    setting({
      field: 'statsFlushInterval',
      name: 'STATS_FLUSH_INTERVAL',
      type: timerDuration('above 0'),
      default: 10_000,
      requires: [FLUSHED],
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
      requires: [PUSHED_OR_TAGGED],
      help: 'Host or socket of statsd or DogStatsD; unix:// is a datagram socket, unixstream:// a stream socket (length-prefixed for DogStatsD).',
    }),
    setting({
      field: 'pushstatsPort',
      name: 'PUSHSTATS_PORT',
      alias: 'STATSD_PORT',
      type: port,
      default: 8125,
      requires: [PUSHED_OR_TAGGED, TO_HOST],
      help: 'Port of statsd or DogStatsD.',
    }),
    setting({
      field: 'pushstatsProtocol',
      name: 'PUSHSTATS_PROTOCOL',
      alias: 'STATSD_PROTOCOL',
      type: choice({ tcp: [], udp: [] }),
      default: 'tcp',
      requires: [is('USE_PUSHSTATS', 'true'), TO_HOST],
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
      requires: [TAGGED_OUTPUT],
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
      requires: [PULLED],
      help: 'Address of the metrics listener.',
    }),
    setting({
      field: 'pullmetricsPath',
      name: 'PULLMETRICS_PATH',
      alias: 'PROMETHEUS_PATH',
      type: textLike(/^\/[^\s?#]*$/, 'path that begins with /'),
      default: '/metrics',
      requires: [PULLED],
      help: 'HTTP path of the metrics.',
    }),
    setting({
      field: 'pullmetricsMapperYaml',
      name: 'PULLMETRICS_MAPPER_YAML',
      alias: 'PROMETHEUS_MAPPER_YAML',
      type: filePath,
      default: undefined,
      requires: [PULLED],
      help: 'YAML file that maps statistics to Prometheus metrics, instead of the built-in mapping.',
    }),
    setting({
      field: 'pullmetricsResponseTimeAsMilliseconds',
      name: 'PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS',
      alias: 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
      type: boolean,
      default: false,
      requires: [PULLED, isNotSet('PULLMETRICS_MAPPER_YAML')],
      help: 'Reports response times in milliseconds instead of seconds in the built-in mapping.',
    }),
  ],
  families: [
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_PATTERN',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_PATTERN',
      allowed: 'regular expression',
      defaultText: 'required',
      requires: [TAGGED_OUTPUT],
      help: 'Pattern of the statistic names to which this mogrifier applies; <NAME> is its name in upper case.',
    },
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_NAME',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_NAME',
      allowed: 'text',
      defaultText: 'required',
      requires: [TAGGED_OUTPUT],
      help: 'Name to send instead; $1, $2 are the capture groups of the pattern.',
    },
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_TAGS',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_TAGS',
      allowed: 'list of key:value',
      defaultText: 'none',
      requires: [TAGGED_OUTPUT],
      help: 'Tags to send with that name; values may contain $1, $2.',
    },
  ],
});
