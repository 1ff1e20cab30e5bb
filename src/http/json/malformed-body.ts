/** A body that is no RateLimitRequest in proto3 JSON. The message says where and what is allowed, for the caller. */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody';
}
