/** The type of the resources that rules come in. */
export const RULES_TYPE_URL = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
