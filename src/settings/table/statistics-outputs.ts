import { derived, group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { duration } from '../values/duration';
import { list, pairs } from '../values/lists';
import { listenAddress, statisticsHost } from '../values/addresses';
import { port } from '../values/numbers';
import { filePath, textLike } from '../values/text';

export const statisticsOutputSettings = group({
  title: 'Outputs of statistics',
  note: 'Several may run side by side. With none, statistics go to standard output, one JSON object a line.',
  settings: [
    setting({
      field: 'statsFlushInterval',
      name: 'STATS_FLUSH_INTERVAL',
      type: duration('above 0'),
      default: 10_000,
      help: 'Time between two flushes.',
    }),
    setting({
      field: 'extraTags',
      name: 'EXTRA_TAGS',
      type: pairs({ separator: ':', emptyValues: 'allowed' }),
      default: {},
      help: 'Tags of every statistic; those without a value are left out.',
    }),
    setting({
      field: 'usePushstats',
      name: 'USE_PUSHSTATS',
      alias: 'USE_STATSD',
      type: boolean,
      default: derived('true unless USE_TAGGEDSTATS or USE_PULLMETRICS is'),
      help: 'Pushes to a statsd daemon.',
    }),
    setting({
      field: 'pushstatsHost',
      name: 'PUSHSTATS_HOST',
      alias: 'STATSD_HOST',
      type: statisticsHost,
      default: { host: 'localhost' },
      help: 'Host of the daemon, with or without tags, or its socket: unix:// for datagrams, unixstream:// for a stream, in which packets with tags go behind their lengths.',
    }),
    setting({
      field: 'pushstatsPort',
      name: 'PUSHSTATS_PORT',
      alias: 'STATSD_PORT',
      type: port,
      default: 8125,
      help: 'Port of the daemon, with or without tags; a socket has none.',
    }),
    setting({
      field: 'pushstatsProtocol',
      name: 'PUSHSTATS_PROTOCOL',
      alias: 'STATSD_PROTOCOL',
      type: choice({ tcp: [], udp: [] }),
      default: 'tcp',
      help: 'How the host without tags is reached; the one with tags always by udp.',
    }),
    setting({
      field: 'useTaggedstats',
      name: 'USE_TAGGEDSTATS',
      alias: 'USE_DOG_STATSD',
      type: boolean,
      default: false,
      help: 'Pushes with real tags, in the form of DogStatsD.',
    }),
    setting({
      field: 'taggedstatsMogrifiers',
      name: 'TAGGEDSTATS_MOGRIFIERS',
      alias: 'USE_DOG_STATSD_MOGRIFIERS',
      type: list('names'),
      default: [],
      help: 'Mogrifiers, which turn names into tags; the first whose pattern matches a name is used.',
    }),
    setting({
      field: 'usePullmetrics',
      name: 'USE_PULLMETRICS',
      alias: 'USE_PROMETHEUS',
      type: boolean,
      default: false,
      help: 'Serves a page for Prometheus to scrape.',
    }),
    setting({
      field: 'pullmetricsAddr',
      name: 'PULLMETRICS_ADDR',
      alias: 'PROMETHEUS_ADDR',
      type: listenAddress,
      default: { host: '0.0.0.0', port: 9090 },
      help: 'Where that page is served.',
    }),
    setting({
      field: 'pullmetricsPath',
      name: 'PULLMETRICS_PATH',
      alias: 'PROMETHEUS_PATH',
      type: textLike(/^\/[^\s?#]*$/, 'path that begins with /'),
      default: '/metrics',
      help: 'Path of that page.',
    }),
    setting({
      field: 'pullmetricsMapperYaml',
      name: 'PULLMETRICS_MAPPER_YAML',
      alias: 'PROMETHEUS_MAPPER_YAML',
      type: filePath,
      default: undefined,
      help: 'File that maps statistics to metrics, in place of the built-in mapping.',
    }),
    setting({
      field: 'pullmetricsResponseTimeAsMilliseconds',
      name: 'PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS',
      alias: 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
      type: boolean,
      default: false,
      help: 'Keeps response times in milliseconds in the built-in mapping.',
    }),
  ],
  families: [
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_PATTERN',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_PATTERN',
      allowed: 'regular expression',
      defaultText: 'required',
      help: 'Statistic names that this mogrifier takes; <NAME> is its name in upper case.',
    },
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_NAME',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_NAME',
      allowed: 'text',
      defaultText: 'required',
      help: 'Name sent instead; $1, $2 are the groups of the pattern.',
    },
    {
      name: 'TAGGEDSTATS_MOGRIFIER_<NAME>_TAGS',
      alias: 'DOG_STATSD_MOGRIFIER_<NAME>_TAGS',
      allowed: 'list of key:value',
      defaultText: 'none',
      help: 'Tags sent with it; values may hold $1, $2.',
    },
  ],
});
