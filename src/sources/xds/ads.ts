import type { Observable } from 'rxjs';
import type { DiscoveryRequest } from '../../gen/envoy/service/discovery/v3/discovery';

/** An event of one stream of the aggregated discovery service (ADS). */
export type AdsEvent = AdsConnected | AdsResponse;

/** The connection is established. A server may stay silent on it for as long as it has nothing new. */
export interface AdsConnected {
  readonly kind: 'connected';
}

export interface AdsResponse {
  readonly kind: 'response';
  /** An encoded `DiscoveryResponse`. */
  readonly message: Uint8Array;
}

/**
 * Opens a stream on subscribe and sends the requests on it as they are emitted. Completes when the server ends the stream with
 * status OK; otherwise fails with an {@link AdsStreamError}. Unsubscribing closes the stream and its connection.
 */
export type ConnectAds = (requests$: Observable<DiscoveryRequest>) => Observable<AdsEvent>;

/** The error that a stream ended with. */
export class AdsStreamError extends Error {
  override readonly name = 'AdsStreamError';

  /**
   * @param message what happened, on one line
   * @param hasLostResponse whether the server sent a response that could not be received, so that it cannot be answered either
   */
  constructor(
    message: string,
    readonly hasLostResponse = false,
  ) {
    super(message);
  }
}

/** The type of the resources that contain rules. */
export const RULES_TYPE_URL = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
