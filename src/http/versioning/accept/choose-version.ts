import type { ApiBlock } from '../routes/versioned-path';
import { type AcceptedType, parseAccept } from './accept-header';

/**
 * The version that a request receives.
 *
 * - Types of our vendor decide when there are any: the most preferred one that can be served, where one without a version means
 *   the default version. A version or suffix that is not declared cannot be served.
 * - Without them, any general type (such as application/json or a range) means the default version.
 * - No header, or an empty one, means the default version.
 *
 * Types with quality 0 are not acceptable and count for nothing.
 *
 * @param header the `Accept` header
 * @returns undefined when the client accepts none of the versions
 */
export function chooseVersion(header: string | undefined, block: ApiBlock): number | undefined {
  if (header === undefined || header === '' || header === '*/*') return block.defaultVersion;
  const types = parseAccept(header);
  if (types.length === 0) return block.defaultVersion;
  let namesVendor = false;
  let acceptsGeneral = false;
  for (const type of types) {
    if (type.quality === 0) continue;
    if (type.vendor === undefined) acceptsGeneral = true;
    if (type.vendor !== block.vendor) continue;
    namesVendor = true;
    const version = versionOf(type, block);
    if (version !== undefined) return version;
  }
  return acceptsGeneral && !namesVendor ? block.defaultVersion : undefined;
}

function versionOf({ version, suffix }: AcceptedType, { defaultVersion, versions }: ApiBlock): number | undefined {
  if (suffix !== undefined && suffix !== 'json') return undefined;
  if (version === undefined) return defaultVersion;
  return VERSION.test(version) && versions.includes(Number(version)) ? Number(version) : undefined;
}

/** `02` and `2.0` are not versions. */
const VERSION = /^[1-9]\d*$/;

/** The media types of a block's versions. */
export function mediaTypes({ vendor, versions }: ApiBlock): readonly string[] {
  return versions.map((version) => mediaType(vendor, version));
}

export function mediaType(vendor: string, version: number): string {
  return `application/vnd.${vendor}+json; version=${version}`;
}
