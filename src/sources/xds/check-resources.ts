import type { Any } from '../../gen/google/protobuf/any';
import { DiscoveryResponse } from '../../gen/envoy/service/discovery/v3/discovery';
import { RateLimitConfig } from '../../gen/ratelimit/config/ratelimit/v3/rls_conf';
import type { Problem } from '../../rules/files/problems/problem';
import { ProblemReport } from '../../rules/files/problems/source-text';
import { readRuleTrees } from '../../rules/files/read-rule-trees';
import { showText } from '../../rules/files/yaml/yaml-tree';
import { messageOf } from '../../text/thrown';
import { type CheckedRules, firstOf } from '../loading/check-files';
import { resourceTree } from './resource-tree';

/** The type of the resources that contain rules. */
export const RULES_TYPE_URL = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

const NO_RULES = 'the server has no rules for this node: nothing is limited';

/**
 * Decodes the rules of a response and checks them like rule files. The resources are applied in the order of their
 * names.
 */
export function checkResources(message: Uint8Array, mergeDomainConfigs: boolean): CheckedRules {
  const { typeUrl, resources } = DiscoveryResponse.decode(message);
  if (!isRules(typeUrl)) return rejected([`the response is of type ${showText(typeUrl)}, not ${RULES_TYPE_URL}`]);
  const decoded: RateLimitConfig[] = [];
  const errors: string[] = [];
  for (const [index, resource] of resources.entries()) {
    try {
      decoded.push(decode(resource));
    } catch (error) {
      errors.push(`resource ${index + 1} of ${resources.length} ${messageOf(error)}`);
    }
  }
  if (errors.length > 0) return rejected(errors);
  const report = new ProblemReport();
  const trees = decoded.sort(byName).map(resourceTree);
  const configs = readRuleTrees(trees, { mergeDomainConfigs }, report);
  const problems = report.finish([]);
  return {
    configs,
    errors: firstOf(problems.errors, lineOf, 'errors'),
    warnings: resources.length === 0 ? [NO_RULES] : firstOf(problems.warnings, lineOf, 'warnings'),
  };
}

function decode({ typeUrl, value }: Any): RateLimitConfig {
  if (!isRules(typeUrl)) throw new Error(`is of type ${showText(typeUrl)}, not ${RULES_TYPE_URL}`);
  try {
    return RateLimitConfig.decode(value);
  } catch (error) {
    throw new Error(`cannot be decoded: ${messageOf(error)}`, { cause: error });
  }
}

/** Ignores the prefix of the type URL: it is not part of the type. */
function isRules(typeUrl: string): boolean {
  return nameOf(typeUrl) === nameOf(RULES_TYPE_URL);
}

function nameOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
}

/** Servers send resources in any order; which rule comes first must not depend on it. */
function byName(a: RateLimitConfig, b: RateLimitConfig): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  if (a.domain !== b.domain) return a.domain < b.domain ? -1 : 1;
  return 0;
}

function lineOf({ file, sourceLine: path, message, advice }: Problem): string {
  return `${path === '' ? file : `${file}, ${path}`}: ${message}. ${advice}`;
}

function rejected(errors: readonly string[]): CheckedRules {
  return { configs: [], errors: firstOf(errors, String, 'errors'), warnings: [] };
}
