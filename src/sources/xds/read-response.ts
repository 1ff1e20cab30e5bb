import { hash } from 'node:crypto';
import { DiscoveryResponse } from '../../gen/envoy/service/discovery/v3/discovery';

/** A response as far as it has to be known before its rules are looked at. */
export interface ReadResponse {
  readonly version: string;
  readonly nonce: string;
  /** The same for the same rules, in whatever order the resources come. */
  readonly digest: string;
  /** All of it, encoded. */
  readonly message: Uint8Array;
}

/** @throws when the bytes are no response at all */
export function readResponse(message: Uint8Array): ReadResponse {
  const { versionInfo, nonce, typeUrl, resources } = DiscoveryResponse.decode(message);
  const digests = resources.map((resource) => `${resource.typeUrl} ${hash('sha1', resource.value)}`);
  return { version: versionInfo, nonce, digest: hash('sha1', [typeUrl, ...digests.sort()].join('\n')), message };
}
