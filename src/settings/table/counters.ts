import { planned } from './planned';
import { derived, group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { duration } from '../values/duration';
import { text } from '../values/text';
import { wholeNumber } from '../values/numbers';

/** The longest time to live that every kind of store takes, in seconds. */
const LONGEST_JITTER = 2_147_483_647;

export const counterSettings = group({
  title: 'Counters',
  settings: [
    setting({
      field: 'backendType',
      name: 'BACKEND_TYPE',
      type: choice({ memory: [], kvstore: ['redis'], plaincache: ['memcache'] }),
      default: derived(
        'kvstore where KVSTORE_URL is set, plaincache where PLAINCACHE_HOST_PORT or PLAINCACHE_SRV is, else memory',
      ),
      help: 'Where counters live: in this process, in a key-value store, or in memcached.',
      // Counting in memory where a shared store was asked for would let every process grant the whole limit.
      plannedValues: { plaincache: planned.plaincache },
    }),
    setting({
      field: 'memoryMaxKeys',
      name: 'MEMORY_MAX_KEYS',
      type: wholeNumber({ min: 1 }),
      default: 1_000_000,
      help: 'Counters that the memory store holds at most.',
    }),
    setting({
      field: 'cacheKeyPrefix',
      name: 'CACHE_KEY_PREFIX',
      type: text(),
      default: '',
      help: "Text before every counter's key, in every store.",
    }),
    setting({
      field: 'kvstorePipelineWindow',
      name: 'KVSTORE_PIPELINE_WINDOW',
      alias: 'REDIS_PIPELINE_WINDOW',
      type: duration('0 or more'),
      default: 0,
      help: 'How long hits of concurrent calls are gathered for one step in the store, of whatever kind; 0: one event-loop turn.',
    }),
    setting({
      field: 'expirationJitterMaxSeconds',
      name: 'EXPIRATION_JITTER_MAX_SECONDS',
      type: wholeNumber({ min: 0, max: LONGEST_JITTER }),
      default: 300,
      help: 'A counter in a shared store outlives its window by a random time below this many seconds.',
    }),
    setting({
      field: 'localCacheSizeInBytes',
      name: 'LOCAL_CACHE_SIZE_IN_BYTES',
      alias: 'LocalCacheSizeInBytes',
      type: wholeNumber({ min: 0 }),
      default: 0,
      help: 'Memory for keys known to be over their limit, answered without the store; 0: off.',
    }),
    setting({
      field: 'stopCacheKeyIncrementWhenOverlimit',
      name: 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
      type: boolean,
      default: false,
      help: 'One key of a call over its limit stops the counting of the others.',
    }),
  ],
});
