import { is, isNot } from './condition';
import { derived, group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { duration, timerDuration } from '../values/duration';
import { text } from '../values/text';
import { wholeNumber } from '../values/numbers';

/** The longest time to live that every store accepts, in seconds. */
const LONGEST_JITTER = 2_147_483_647;

/** What a map of V8 can hold. */
const MOST_KEYS = 2 ** 24;
/** Less would hold too few counters to limit anything, and is probably meant in another unit. In bytes. */
const SMALLEST_MEMORY = 1_048_576;

export const counterSettings = group({
  title: 'Counters',
  settings: [
    setting({
      field: 'backendType',
      name: 'BACKEND_TYPE',
      type: choice({ memory: [], kvstore: ['redis'], plaincache: ['memcache'] }),
      default: derived(
        'kvstore if KVSTORE_URL is set, plaincache if PLAINCACHE_HOST_PORT or PLAINCACHE_SRV is set, else memory',
      ),
      help: 'Where counters are stored: in this process, in Redis or Valkey (kvstore), or in memcached (plaincache).',
      // Falling back to memory instead of the shared store would let every process grant the full limit.
    }),
    setting({
      field: 'memoryMaxKeys',
      name: 'MEMORY_MAX_KEYS',
      type: wholeNumber({ min: 1, max: MOST_KEYS }),
      default: 1_000_000,
      requires: [is('BACKEND_TYPE', 'memory')],
      help: 'Maximum number of counters in the memory store.',
    }),
    setting({
      field: 'memoryMaxBytes',
      name: 'MEMORY_MAX_BYTES',
      type: wholeNumber({ min: SMALLEST_MEMORY }),
      default: undefined,
      defaultText: 'a quarter of the memory that the process may use',
      requires: [is('BACKEND_TYPE', 'memory')],
      help: 'Maximum memory of the counters in the memory store, in bytes.',
    }),
    setting({
      field: 'cacheKeyPrefix',
      name: 'CACHE_KEY_PREFIX',
      type: text(),
      default: '',
      help: 'Prefix of the key of every counter, in every store.',
    }),
    setting({
      field: 'kvstorePipelineWindow',
      name: 'KVSTORE_PIPELINE_WINDOW',
      alias: 'REDIS_PIPELINE_WINDOW',
      type: timerDuration('0 or more'),
      default: 0,
      help: 'How long to collect the hits of concurrent requests into one batch, in every store; 0: one event-loop turn, or nothing at all in the memory store.',
    }),
    setting({
      field: 'expirationJitterMaxSeconds',
      name: 'EXPIRATION_JITTER_MAX_SECONDS',
      type: wholeNumber({ min: 0, max: LONGEST_JITTER }),
      default: 300,
      requires: [is('BACKEND_TYPE', 'kvstore', 'plaincache')],
      help: 'Counters in a shared store expire after their window plus a random delay below this many seconds.',
    }),
    setting({
      field: 'kvstoreHealthCheckActiveConnection',
      name: 'KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION',
      alias: 'REDIS_HEALTH_CHECK_ACTIVE_CONNECTION',
      type: boolean,
      default: false,
      requires: [is('BACKEND_TYPE', 'kvstore', 'plaincache')],
      help: 'Reports the service as unhealthy while it has no connection to a store that it shares.',
    }),
    setting({
      field: 'localCacheSizeInBytes',
      name: 'LOCAL_CACHE_SIZE_IN_BYTES',
      alias: 'LocalCacheSizeInBytes',
      type: wholeNumber({ min: 0 }),
      default: 0,
      help: 'Memory for a local cache of keys that are over their limit, answered without the store; 0: off.',
    }),
    setting({
      field: 'localCacheMaxAge',
      name: 'LOCAL_CACHE_MAX_AGE',
      type: duration('0 or more'),
      default: 60_000,
      requires: [isNot('LOCAL_CACHE_SIZE_IN_BYTES', '0')],
      help: 'Time after which the store is asked again for a key of the local cache, in whole seconds; 0: when its window ends.',
    }),
    setting({
      field: 'stopCacheKeyIncrementWhenOverlimit',
      name: 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
      type: boolean,
      default: false,
      help: 'Once one key of a request is over its limit, does not count the other keys.',
    }),
  ],
});
