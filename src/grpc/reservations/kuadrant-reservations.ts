import { RateLimitResponse_Code as CodeNumber } from '../../gen/envoy/service/ratelimit/v3/rls';
import { CommitResponse, ReserveResponse } from '../../gen/kuadrant/service/ratelimit/v1/ratelimit';
import type { Purpose } from '../../counting/algorithms/algorithm';
import { DecisionError } from '../../counting/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import { Code } from '../../limiter/verdict';
import type { Decide } from '../../streams/ports/decide';
import { MAX_TTL, MIN_TTL, ReservationError, type Reservations } from '../../streams/ports/reservations';
import type { UnaryCall, UnaryMethods } from '../method';
import { decodeRequest } from '../rate-limit/decode-request';
import { ProtobufReader, WireType } from '../rate-limit/protobuf-reader';
import { KUADRANT, withHits } from '../rate-limit/rate-limit-service';
import { type OnInternalError, decodeDuration, promisedMethod } from './reservations-service';

/** Milliseconds. */
const DEFAULT_TTL = 60_000;

/** What the methods are carried out with. */
interface Means {
  readonly decide: Decide;
  readonly reservations: Reservations;
}

/**
 * `Reserve` and `Commit` of {@link KUADRANT}: a reservation that is given back when it expires, and its settlement. A
 * call that reserves or settles nothing is an ask or a report, which every store can decide.
 */
export function kuadrantReservations({ decide, reservations }: Means, internalError: OnInternalError): UnaryMethods {
  const reserve = promisedMethod(
    `/${KUADRANT}/Reserve`,
    async (message, caller) => {
      const { amount, ttl, ...read } = decode(message, AMOUNT);
      if (amount === 0) return encodeReserved(await codeOf(decide, requestOf(read, amount, 'ask'), caller));
      const call = { request: requestOf(read, amount), ttl, id: undefined, onExpiry: 'cancel', caller } as const;
      const { id, verdict } = await reservations.reserve(call);
      return encodeReserved(verdict.overallCode, id);
    },
    internalError,
  );
  const [path, commit] = promisedMethod(
    `/${KUADRANT}/Commit`,
    async (message, caller) => {
      const { amount, id, ...read } = decode(message, ACTUAL_AMOUNT);
      const wasOpen = await settled(reservations, { id, amount, caller });
      if (wasOpen === undefined && amount > 0) await codeOf(decide, requestOf(read, amount, 'report'), caller);
      return CommitResponse.encode({ reservationReleased: wasOpen === true }).finish();
    },
    internalError,
  );
  return new Map([reserve, [path, Object.assign(commit, { isReport: true })]]);
}

function encodeReserved(code: Code, reservationId = ''): Uint8Array {
  const number = code === Code.OK ? CodeNumber.OK : CodeNumber.OVER_LIMIT;
  return ReserveResponse.encode({ code: number, reservationId }).finish();
}

/**
 * Whether the reservation was open, or was settled by an earlier call. Undefined when there is none whose settlement
 * has counted the amount.
 */
async function settled(
  reservations: Reservations,
  { id, amount, caller }: { readonly id: string; readonly amount: number; readonly caller: UnaryCall },
): Promise<boolean | undefined> {
  if (id === '') return undefined;
  try {
    return (await reservations.settle(id, amount, caller)).wasOpen ?? true;
  } catch (error) {
    if (!(error instanceof ReservationError)) throw error;
    // A conflict: it has ended before, with another amount.
    return error.code === 'reservation_conflict' ? true : undefined;
  }
}

/** Rejects with the `DecisionError` of a request without a verdict. */
function codeOf(decide: Decide, request: RateLimitRequest, call: UnaryCall): Promise<Code> {
  const { trace, timeToAnswer } = call;
  return new Promise((resolve, reject) => {
    decide(request, {
      verdict: ({ overallCode }) => resolve(overallCode),
      error: reject,
      ...{ caller: call, trace, timeToAnswer },
    });
  });
}

/** The domain and descriptors of a message, each with the amount as its hits. */
function requestOf({ domain, descriptors }: Decoded, amount: number, purpose?: Purpose): RateLimitRequest {
  return withHits({ domain, descriptors, hitsAddend: 0, purpose }, amount);
}

const AMOUNT = (3 << 3) | WireType.VARINT;
const TTL = (4 << 3) | WireType.LEN;
const RESERVATION_ID = (3 << 3) | WireType.LEN;
const ACTUAL_AMOUNT = (4 << 3) | WireType.VARINT;

type Decoded = Pick<RateLimitRequest, 'domain' | 'descriptors'>;

/**
 * Decodes a message of either method, whose first fields are those of ShouldRateLimit and are read as these.
 *
 * @param amountTag the tag of its amount
 */
function decode(
  message: Uint8Array,
  amountTag: number,
): Decoded & { readonly amount: number; readonly ttl: number; readonly id: string } {
  const { domain, descriptors } = decodeRequest(message);
  const reader = new ProtobufReader(message);
  let [amount, ttl, id] = [0, DEFAULT_TTL, ''];
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === amountTag) amount = reader.uint64();
    else if (tag === TTL) ttl = Math.min(MAX_TTL, Math.max(MIN_TTL, decodeDuration(reader)));
    else if (tag === RESERVATION_ID) id = reader.text();
    else reader.skip(tag);
  }
  if (amount > Number.MAX_SAFE_INTEGER) {
    throw new DecisionError('invalid_request', 'the amount exceeds the largest count, 2^53 - 1');
  }
  return { domain, descriptors, amount, ttl, id };
}
