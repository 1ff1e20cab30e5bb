import type { DecisionError, DecisionErrorCode } from '../../limiter/decision-error';
import { GrpcStatus, type UnaryCall, type UnaryHandler } from '../method';
import type { RateLimitRequest } from '../../limiter/request';
import type { Verdict } from '../../limiter/verdict';
import type { Counter } from '../../statistics/counter';
import { SERVICE_ERRORS, type Statistics } from '../../statistics/statistics';
import type { DecisionObserver, Decide } from '../../streams/ports/decide';
import { decodeRequest } from './decode-request';
import { encodeResponse } from './encode-response';
import { WireError } from './protobuf-reader';

export const SHOULD_RATE_LIMIT = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/** `envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`: decodes, asks, encodes. */
export function shouldRateLimit(decide: Decide, statistics: Statistics): UnaryHandler {
  const serviceErrors = statistics.counter(SERVICE_ERRORS);
  return (message, call) => {
    const request = decode(message, call, serviceErrors);
    if (request === undefined) return;
    call.onCancel(decide(request, new CallingAsker(call)));
  };
}

function decode(message: Uint8Array, call: UnaryCall, serviceErrors: Counter): RateLimitRequest | undefined {
  try {
    return decodeRequest(message);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    serviceErrors.add(1);
    // The status that gRPC servers give a message they cannot parse.
    call.fail(GrpcStatus.INTERNAL, `the message is not a RateLimitRequest: ${error.message}`);
    return undefined;
  }
}

class CallingAsker implements DecisionObserver {
  readonly #call: UnaryCall;
  constructor(call: UnaryCall) {
    this.#call = call;
  }

  get trace(): UnaryCall['trace'] {
    return this.#call.trace;
  }

  verdict(verdict: Verdict): void {
    this.#call.reply(encodeResponse(verdict));
  }

  error(error: DecisionError): void {
    this.#call.fail(STATUS_OF[error.code], error.message);
  }
}

/** The status of a call that got no verdict. Proxies treat every status but OK alike, so being exact costs nothing. */
export const STATUS_OF: Readonly<Record<DecisionErrorCode, GrpcStatus>> = {
  invalid_request: GrpcStatus.INVALID_ARGUMENT,
  no_configuration: GrpcStatus.FAILED_PRECONDITION,
  store_failed: GrpcStatus.UNAVAILABLE,
  store_timeout: GrpcStatus.UNAVAILABLE,
  store_pool_empty: GrpcStatus.RESOURCE_EXHAUSTED,
  shutting_down: GrpcStatus.UNAVAILABLE,
};
