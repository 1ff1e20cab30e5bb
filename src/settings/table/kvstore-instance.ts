import { is, isNot } from './condition';
import { boolean, choice } from '../values/choices';
import { timerDuration } from '../values/duration';
import { wholeNumber } from '../values/numbers';
import { text } from '../values/text';
import type { ValueType } from '../values/value-type';
import { derived, setting } from './setting';

/** The prefixes of the settings of one instance of the key-value store. */
interface InstanceNames<Prefix extends string> {
  readonly field: Prefix;
  readonly name: string;
  readonly alias: string;
}

/** The instance that holds all counters, or all but those of per-second limits. */
export const MAIN_INSTANCE = { field: 'kvstore', name: 'KVSTORE', alias: 'REDIS' } as const;

/** The instance that holds the counters of per-second limits. */
export const PER_SECOND_INSTANCE = {
  field: 'kvstorePersecond',
  name: 'KVSTORE_PERSECOND',
  alias: 'REDIS_PERSECOND',
} as const;

const credentials: ValueType<string> = { ...text('password or username:password'), keepsBlanks: true };

function names<const Prefix extends string, const Suffix extends string>(
  instance: InstanceNames<Prefix>,
  suffix: Suffix,
  variable: string,
) {
  return {
    field: `${instance.field}${suffix}` as const,
    name: `${instance.name}_${variable}`,
    alias: `${instance.alias}_${variable}`,
  };
}

/** Which servers an instance consists of, and the credentials for them. */
export function serverSettings<const Prefix extends string>(instance: InstanceNames<Prefix>) {
  return [
    setting({
      ...names(instance, 'Type', 'TYPE'),
      type: choice({ single: [], sentinel: [], cluster: [] }),
      default: 'single',
      help: 'Deployment of Redis or Valkey: one server, servers monitored by Sentinel, or a cluster.',
    }),
    setting({
      ...names(instance, 'Url', 'URL'),
      type: text(
        'host:port, socket path, or redis:// or rediss:// URL; sentinel: master name and sentinels; cluster: nodes',
      ),
      default: undefined,
      secret: 'credentials',
      help: 'Address of the server; for sentinel and cluster, a comma-separated list.',
    }),
    setting({
      ...names(instance, 'SocketType', 'SOCKET_TYPE'),
      type: choice({ tcp: [], tcp4: [], tcp6: [], unix: [] }),
      default: derived(`unix if ${instance.name}_URL is a path, else tcp`),
      requires: [is(`${instance.name}_TYPE`, 'single')],
      help: 'Socket type of the connections to a single server.',
    }),
    setting({
      ...names(instance, 'Auth', 'AUTH'),
      type: credentials,
      default: undefined,
      secret: 'value',
      help: `Credentials for the servers; override those in ${instance.name}_URL.`,
    }),
    setting({
      ...names(instance, 'SentinelAuth', 'SENTINEL_AUTH'),
      type: credentials,
      default: undefined,
      secret: 'value',
      requires: [is(`${instance.name}_TYPE`, 'sentinel')],
      help: 'Credentials for the sentinels.',
    }),
  ];
}

/** The connections to each server of an instance. */
export function poolSettings<const Prefix extends string>(instance: InstanceNames<Prefix>) {
  return [
    setting({
      ...names(instance, 'PoolSize', 'POOL_SIZE'),
      type: wholeNumber({ min: 1 }),
      default: 10,
      help: 'Number of connections to keep open to each server.',
    }),
    setting({
      ...names(instance, 'Timeout', 'TIMEOUT'),
      type: timerDuration('0 or more'),
      default: 10_000,
      help: 'Timeout of connecting and of each command batch; 0: none.',
    }),
    setting({
      ...names(instance, 'PoolOnEmptyBehavior', 'POOL_ON_EMPTY_BEHAVIOR'),
      type: choice({ CREATE: [], ERROR: [], WAIT: [] }),
      default: 'CREATE',
      help: 'What to do while all connections are busy: open another one, fail the request, or wait.',
    }),
    setting({
      ...names(instance, 'PoolOnEmptyWaitDuration', 'POOL_ON_EMPTY_WAIT_DURATION'),
      type: timerDuration('0 or more'),
      default: 1000,
      requires: [isNot(`${instance.name}_POOL_ON_EMPTY_BEHAVIOR`, 'WAIT')],
      help: 'How long to wait for a free connection before CREATE or ERROR applies.',
    }),
  ];
}

/** How batches are sent to the servers of an instance. */
export function pipelineSettings<const Prefix extends string>(instance: InstanceNames<Prefix>) {
  return [
    setting({
      ...names(instance, 'PipelineLimit', 'PIPELINE_LIMIT'),
      type: wholeNumber({ min: 0 }),
      default: 0,
      isDeprecated: true,
      help: 'Deprecated, has no effect.',
    }),
    setting({
      ...names(instance, 'ClusterPipelineParallelism', 'CLUSTER_PIPELINE_PARALLELISM'),
      type: wholeNumber({ min: 0 }),
      default: 1,
      requires: [is(`${instance.name}_TYPE`, 'cluster')],
      help: 'Cluster nodes to send to concurrently, at most the pool size; 0: as many as the pool size.',
    }),
  ];
}

/** Whether the connections of an instance use TLS; the files are common to both instances. */
export function tlsSetting<const Prefix extends string>(instance: InstanceNames<Prefix>) {
  return setting({
    ...names(instance, 'Tls', 'TLS'),
    type: boolean,
    default: false,
    help: 'Connects to the servers with TLS.',
  });
}

type InstanceRow =
  | ReturnType<typeof serverSettings<''>>[number]
  | ReturnType<typeof poolSettings<''>>[number]
  | ReturnType<typeof pipelineSettings<''>>[number]
  | ReturnType<typeof tlsSetting<''>>;

/** The prefix of the fields of an instance. */
export type InstancePrefix = (typeof MAIN_INSTANCE | typeof PER_SECOND_INSTANCE)['field'];

/** The settings that each instance has, as the part of their fields after the prefix. */
export type InstanceField = InstanceRow['field'];
