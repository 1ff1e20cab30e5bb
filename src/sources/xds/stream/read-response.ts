import { hash } from 'node:crypto';
import { DiscoveryResponse } from '../../../gen/envoy/service/discovery/v3/discovery';

/** What has to be known of a response before its rules are checked. */
export interface ReceivedResponse {
  readonly version: string;
  readonly nonce: string;
  /** Equal for the same rules, regardless of the order of the resources. */
  readonly digest: string;
  /** The whole encoded `DiscoveryResponse`. */
  readonly message: Uint8Array;
}

/** @throws when the bytes cannot be decoded as a `DiscoveryResponse` */
export function readResponse(message: Uint8Array): ReceivedResponse {
  const { versionInfo, nonce, typeUrl, resources } = DiscoveryResponse.decode(message);
  const digests = resources.map((resource) => `${resource.typeUrl} ${hash('sha1', resource.value)}`);
  return { version: versionInfo, nonce, digest: hash('sha1', [typeUrl, ...digests.sort()].join('\n')), message };
}
