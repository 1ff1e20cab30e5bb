import { tap } from 'rxjs';
import type { RuleEvent, RuleSource } from '../streams/ports/rule-source';
import { ruleFileSource } from './rule-files/rule-file-source';
import type { RuleSourceParts } from './xds/xds-rule-source';

/**
 * The source of rules that the settings select. The client of management servers is loaded only for
 * CONFIG_TYPE=GRPC_XDS_SOTW.
 *
 * @throws Error that names the setting or the TLS file that cannot be used
 */
export async function ruleSource(parts: RuleSourceParts): Promise<RuleSource> {
  if (parts.settings.configType === 'FILE') return fileSource(parts);
  // The extension is that of the compiled file, as in an ES module.
  const { xdsSource } = await import('./xds/xds-rule-source.js');
  return xdsSource(parts);
}

function fileSource({ settings, statistics, log, onLoaded }: RuleSourceParts): RuleSource {
  const { events$ } = ruleFileSource({ settings, log, onLoaded });
  const attempts = statistics.counter('runtime.load_attempts');
  const failures = statistics.counter('runtime.load_failures');
  let count = 0;
  statistics.gauge('runtime.num_values', () => count);
  function countLoad(event: RuleEvent): void {
    attempts.add(1);
    if (event.kind === 'rejected') failures.add(1);
    else count = event.files ?? 0;
  }
  return { events$: events$.pipe(tap(countLoad)) };
}
