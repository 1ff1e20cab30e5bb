import type { DecisionErrorCode } from '../../limiter/decision-error';
import { GrpcStatus } from '../method';

/** The status of a call that got no verdict. Proxies treat every status but OK alike, so being exact costs nothing. */
export const STATUS_OF: Readonly<Record<DecisionErrorCode, GrpcStatus>> = {
  invalid_request: GrpcStatus.INVALID_ARGUMENT,
  no_configuration: GrpcStatus.FAILED_PRECONDITION,
  store_failed: GrpcStatus.UNAVAILABLE,
  store_timeout: GrpcStatus.UNAVAILABLE,
  store_pool_empty: GrpcStatus.RESOURCE_EXHAUSTED,
  shutting_down: GrpcStatus.UNAVAILABLE,
};
