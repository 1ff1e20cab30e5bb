import type { DecisionErrorCode } from '../limiter/decision-error';

/** The HTTP status of a call that got no verdict. A new code without a status does not compile. */
export const DECISION_STATUS: Readonly<Record<DecisionErrorCode, number>> = {
  invalid_request: 400,
  no_configuration: 503,
  store_failed: 503,
  store_timeout: 503,
  store_pool_empty: 503,
  shutting_down: 503,
};
