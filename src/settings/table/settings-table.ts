import { counterSettings } from './counters';
import { decisionSettings } from './decisions';
import { grpcTlsSettings } from './grpc-tls';
import { kvstoreSettings } from './kvstore';
import { kvstorePersecondSettings } from './kvstore-persecond';
import { listenerSettings } from './listeners';
import { plaincacheSettings } from './plaincache';
import { processSettings } from './process';
import { responseHeaderSettings } from './response-headers';
import { ruleSettings } from './rules';
import { statisticsSettings } from './statistics';
import { statisticsOutputSettings } from './statistics-outputs';
import { traceSettings } from './traces';
import { xdsSettings } from './xds';

/**
 * Every setting there is. Reading the environment, the type {@link Settings}, `weir --help` and the README's table all come
 * from here: a new row is a new field, a new line of help and a new line in the README.
 */
export const settingsTable = [
  listenerSettings,
  grpcTlsSettings,
  processSettings,
  ruleSettings,
  xdsSettings,
  decisionSettings,
  responseHeaderSettings,
  counterSettings,
  kvstoreSettings,
  kvstorePersecondSettings,
  plaincacheSettings,
  statisticsSettings,
  statisticsOutputSettings,
  traceSettings,
] as const;
