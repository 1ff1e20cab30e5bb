import { is } from './condition';
import { boolean } from '../values/choices';
import { timerDuration } from '../values/duration';
import { PER_SECOND_INSTANCE, pipelineSettings, poolSettings, serverSettings, tlsSetting } from './kvstore-instance';
import { group, setting } from './setting';

export const kvstorePersecondSettings = group({
  title: 'Second key-value store (Redis or Valkey), for per-second limits',
  note: 'Each setting has the meaning of its KVSTORE_* counterpart. The settings of TLS files, health and startup apply to both stores.',
  requires: [is('BACKEND_TYPE', 'kvstore'), is('KVSTORE_PERSECOND', 'true')],
  settings: [
    setting({
      field: 'kvstorePersecond',
      name: 'KVSTORE_PERSECOND',
      alias: 'REDIS_PERSECOND',
      type: boolean,
      default: false,
      help: 'Stores the counters of per-second limits in a second Redis or Valkey.',
    }),
    ...serverSettings(PER_SECOND_INSTANCE),
    ...poolSettings(PER_SECOND_INSTANCE),
    setting({
      field: 'kvstorePersecondPipelineWindow',
      name: 'KVSTORE_PERSECOND_PIPELINE_WINDOW',
      alias: 'REDIS_PERSECOND_PIPELINE_WINDOW',
      type: timerDuration('0 or more'),
      default: 0,
      help: 'As KVSTORE_PIPELINE_WINDOW, for the per-second instance.',
    }),
    ...pipelineSettings(PER_SECOND_INSTANCE),
    tlsSetting(PER_SECOND_INSTANCE),
  ],
});
