// The response of the servers with a constant response: overall code OK, one descriptor OK.
export const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
export const ANSWER = Buffer.from([0x08, 0x01, 0x12, 0x02, 0x08, 0x01]);
