import type { Observable } from 'rxjs';
import type { DiscoveryRequest } from '../../gen/envoy/service/discovery/v3/discovery';

/** What happens on one stream of the aggregated discovery service. */
export type AdsEvent = AdsConnected | AdsResponse;

/** The connection stands. A server may be silent on it for as long as it has nothing new. */
export interface AdsConnected {
  readonly kind: 'connected';
}

export interface AdsResponse {
  readonly kind: 'response';
  /** A DiscoveryResponse, encoded. */
  readonly message: Uint8Array;
}

/**
 * Opens a stream when it is subscribed to and sends the requests on it as they come. Completes when the server ends the stream
 * in order, fails with an {@link AdsStreamError} otherwise. Unsubscribing ends stream and connection.
 */
export type ConnectAds = (requests$: Observable<DiscoveryRequest>) => Observable<AdsEvent>;

/** How a stream came to a bad end. */
export class AdsStreamError extends Error {
  override readonly name = 'AdsStreamError';

  /**
   * @param message what happened, in one line
   * @param hasLostRules whether the server sent rules that could not be received, so that they cannot be answered either
   */
  constructor(
    message: string,
    readonly hasLostRules = false,
  ) {
    super(message);
  }
}

/** The type of the resources that rules come in. */
export const RULES_TYPE_URL = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
