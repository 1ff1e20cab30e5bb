import { DecisionError, type DecisionErrorCode } from '../../counting/decision-error';
import { GrpcStatus, type UnaryCall, type UnaryHandler, type UnaryMethods } from '../method';
import type { Purpose } from '../../counting/algorithms/algorithm';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../limiter/request';
import type { Verdict } from '../../limiter/verdict';
import { SERVICE_ERRORS, type Statistics } from '../../statistics/statistics';
import type { DecisionObserver, Decide } from '../../streams/ports/decide';
import { decodeRequest } from './decode-request';
import { encodeResponse } from './encode-response';
import { ProtobufError } from './protobuf-reader';

export const SHOULD_RATE_LIMIT = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/** Kuadrant's service, for usage that is known afterwards. */
export const KUADRANT = 'kuadrant.service.ratelimit.v1.RateLimitService';

/** Called with what is wrong with a message, and with the peer that has sent it. */
export type OnMalformed = (reason: string, peer: UnaryCall['peer']) => void;

/**
 * The methods whose request is decided: `ShouldRateLimit`, and those of {@link KUADRANT} with the same messages. Each
 * decodes the request, decides it, and encodes the verdict.
 */
export function rateLimitMethods(decide: Decide, statistics: Statistics, onMalformed: OnMalformed): UnaryMethods {
  const serviceErrors = statistics.counter(SERVICE_ERRORS);
  function reject(call: UnaryCall, error: ProtobufError | DecisionError): void {
    serviceErrors.add(1);
    onMalformed(error.message, call.peer);
    if (error instanceof DecisionError) call.fail(STATUS_OF[error.code], error.message);
    // The status with which gRPC servers answer a message that they cannot parse.
    else call.fail(GrpcStatus.INTERNAL, `invalid RateLimitRequest: ${error.message}`);
  }
  function method(purpose?: Purpose): UnaryHandler {
    function handle(message: Uint8Array, call: UnaryCall): void {
      const request = decode(message, call, purpose, reject);
      if (request !== undefined) call.onCancel(decide(request, new CallObserver(call)));
    }
    return purpose === 'report' ? Object.assign(handle, { isReport: true }) : handle;
  }
  return new Map([
    [SHOULD_RATE_LIMIT, method()],
    [`/${KUADRANT}/CheckRateLimit`, method('ask')],
    [`/${KUADRANT}/Report`, method('report')],
  ]);
}

type Reject = (call: UnaryCall, error: ProtobufError | DecisionError) => void;

function decode(
  message: Uint8Array,
  call: UnaryCall,
  purpose: Purpose | undefined,
  reject: Reject,
): RateLimitRequest | undefined {
  try {
    const request = decodeRequest(message, purpose);
    return purpose === undefined ? request : withHits(request, NO_HITS_ADDEND);
  } catch (error) {
    if (!(error instanceof ProtobufError || error instanceof DecisionError)) throw error;
    reject(call, error);
    return undefined;
  }
}

/**
 * A request whose descriptors have these hits in the place of their own: of a descriptor, Limitador reads the entries
 * only, and the hits of Kuadrant's calls are those of the message.
 */
export function withHits(request: RateLimitRequest, hitsAddend: number): RateLimitRequest {
  const descriptors = request.descriptors.map((each) => ({ ...each, hitsAddend, isNegativeHits: false }));
  return { ...request, descriptors };
}

/** Replies to a call with its verdict or error. */
class CallObserver implements DecisionObserver {
  readonly #call: UnaryCall;

  constructor(call: UnaryCall) {
    this.#call = call;
  }

  get trace(): UnaryCall['trace'] {
    return this.#call.trace;
  }

  get caller(): UnaryCall {
    return this.#call;
  }

  get timeToAnswer(): number | undefined {
    return this.#call.timeToAnswer;
  }

  verdict(verdict: Verdict): void {
    this.#call.reply(encodeResponse(verdict));
  }

  error(error: DecisionError): void {
    this.#call.fail(STATUS_OF[error.code], error.message);
  }
}

/**
 * The status of a call without a verdict. Proxies treat all statuses other than OK alike, so exact ones cost nothing.
 */
export const STATUS_OF: Readonly<Record<DecisionErrorCode, GrpcStatus>> = {
  invalid_request: GrpcStatus.INVALID_ARGUMENT,
  no_configuration: GrpcStatus.FAILED_PRECONDITION,
  too_much_work: GrpcStatus.RESOURCE_EXHAUSTED,
  store_failed: GrpcStatus.UNAVAILABLE,
  store_timeout: GrpcStatus.UNAVAILABLE,
  store_pool_empty: GrpcStatus.RESOURCE_EXHAUSTED,
  shutting_down: GrpcStatus.UNAVAILABLE,
};
