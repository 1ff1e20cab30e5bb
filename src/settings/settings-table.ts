import { counterSettings } from './table/counters';
import { decisionSettings } from './table/decisions';
import { grpcTlsSettings } from './table/grpc-tls';
import { kvstoreSettings } from './table/kvstore';
import { kvstorePersecondSettings } from './table/kvstore-persecond';
import { listenerSettings } from './table/listeners';
import { plaincacheSettings } from './table/plaincache';
import { processSettings } from './table/process';
import { responseHeaderSettings } from './table/response-headers';
import { ruleSettings } from './table/rules';
import { statisticsSettings } from './table/statistics';
import { statisticsOutputSettings } from './table/statistics-outputs';
import { traceSettings } from './table/traces';
import { xdsSettings } from './table/xds';

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
