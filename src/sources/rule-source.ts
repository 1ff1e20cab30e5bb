import type { RuleSource } from '../streams/ports/rule-source';
import { ruleFileSource } from './rule-files/rule-file-source';
import type { RuleSourceParts } from './xds/xds-rule-source';

/**
 * The source of rules that the settings select. The client of management servers is loaded only for
 * CONFIG_TYPE=GRPC_XDS_SOTW.
 *
 * @throws Error that names the setting or the TLS file that cannot be used
 */
export async function ruleSource(parts: RuleSourceParts): Promise<RuleSource> {
  if (parts.settings.configType === 'FILE') return ruleFileSource(parts);
  // The extension is that of the compiled file, as in an ES module.
  const { xdsSource } = await import('./xds/xds-rule-source.js');
  return xdsSource(parts);
}
