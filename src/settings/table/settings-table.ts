import { counterSettings } from './counters';
import { decisionSettings } from './decisions';
import { explanationSettings } from './explanations';
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
import { traceExporterSettings, traceSettings } from './traces';
import { xdsSettings } from './xds';

/**
 * All settings, in the order in which they are documented. Parsing, the type {@link Settings}, `weir --help` and
 * docs/settings.md are derived from this table: a new row is a new field and a new line in both documents.
 */
export const settingsTable = [
  listenerSettings,
  grpcTlsSettings,
  processSettings,
  ruleSettings,
  xdsSettings,
  decisionSettings,
  responseHeaderSettings,
  explanationSettings,
  counterSettings,
  kvstoreSettings,
  kvstorePersecondSettings,
  plaincacheSettings,
  statisticsSettings,
  statisticsOutputSettings,
  traceSettings,
  traceExporterSettings,
] as const;
