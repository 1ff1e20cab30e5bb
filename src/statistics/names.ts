/** Calls refused for what they ask or because no configuration is loaded; one a call, through whichever door. */
export const SERVICE_ERRORS = 'ratelimit.service.call.should_rate_limit.service_error';

/** Calls that the counter store, of whatever kind, failed or answered too late; one a call. */
export const STORE_ERRORS = 'ratelimit.service.call.should_rate_limit.redis_error';
