import { RateLimitResponse } from '../../gen/envoy/service/ratelimit/v3/rls';
import {
  CancelRequest,
  EndedReservation as EndedMessage,
  EndedReservation_State as State,
  ReserveResponse,
  SettleRequest,
} from '../../gen/weir/v1/reservations';
import { DecisionError } from '../../counting/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import {
  type EndedReservation,
  type OnExpiry,
  ReservationError,
  type ReservationErrorCode,
  type Reservations,
  type ReserveCall,
  type Reserved,
} from '../../streams/ports/reservations';
import { GrpcStatus, type UnaryCall, type UnaryHandler, type UnaryMethods } from '../method';
import { requestIn } from '../rate-limit/decode-request';
import { encodeResponse } from '../rate-limit/encode-response';
import { ProtobufError, ProtobufReader, WireType } from '../rate-limit/protobuf-reader';
import { STATUS_OF } from '../rate-limit/rate-limit-service';

export const RESERVATIONS = 'weir.v1.Reservations';

/** What a settlement of all descriptors of a reservation takes, and more. */
const MAX_ENDING_BYTES = 4_096;

/**
 * `weir.v1.Reservations`. A call is carried out even if its caller does not wait, who can send it again with the same
 * id.
 */
export function reservationsService(reservations: Reservations, internalError: OnInternalError): UnaryMethods {
  function method(name: string, work: Work) {
    return promisedMethod(`/${RESERVATIONS}/${name}`, work, internalError);
  }
  return new Map([
    method('Reserve', async (message, caller) =>
      encodeReserved(await reservations.reserve({ ...decodeReserve(message), caller })),
    ),
    method('Settle', async (message, caller) => {
      const { id, hits } = decodeEnding(SettleRequest, message);
      if (hits.length === 0) throw new DecisionError('invalid_request', 'hits is missing');
      const numbers = hits.map(Number);
      if (numbers.some((number) => number > Number.MAX_SAFE_INTEGER)) {
        throw new DecisionError('invalid_request', 'hits exceeds the largest count, 2^53 - 1');
      }
      const used = numbers.length === 1 ? (numbers[0] as number) : numbers;
      return encodeEnded(await reservations.settle(id, used, caller));
    }),
    method('Cancel', async (message, caller) => {
      return encodeEnded(await reservations.cancel(decodeEnding(CancelRequest, message).id, caller));
    }),
  ]);
}

export type OnInternalError = (path: string, error: unknown) => void;

/** Answers a call. What it reads of the message, it reads before it returns its promise. */
export type Work = (message: Uint8Array, call: UnaryCall) => Promise<Uint8Array>;

/** A method by its path, whose call fails with the error that its work rejects with. */
export function promisedMethod(path: string, work: Work, internalError: OnInternalError): [string, UnaryHandler] {
  function handle(message: Uint8Array, call: UnaryCall): void {
    work(message, call).then(
      (response) => call.reply(response),
      (error: unknown) => {
        const known = statusOf(error);
        if (known === undefined) internalError(path, error);
        call.fail(...(known ?? [GrpcStatus.INTERNAL, 'internal error']));
      },
    );
  }
  return [path, handle];
}

const STATUS: Readonly<Record<ReservationErrorCode, GrpcStatus>> = {
  unknown_reservation: GrpcStatus.NOT_FOUND,
  reservation_conflict: GrpcStatus.FAILED_PRECONDITION,
  too_many_reservations: GrpcStatus.RESOURCE_EXHAUSTED,
  not_supported: GrpcStatus.UNIMPLEMENTED,
};

/** Undefined for an error that is not expected. */
function statusOf(error: unknown): [GrpcStatus, string] | undefined {
  if (error instanceof DecisionError) return [STATUS_OF[error.code], error.message];
  if (error instanceof ReservationError) return [STATUS[error.code], error.message];
  if (error instanceof ProtobufError) return [GrpcStatus.INTERNAL, `invalid message: ${error.message}`];
  return undefined;
}

const REQUEST = (1 << 3) | WireType.LEN;
const TTL = (2 << 3) | WireType.LEN;
const ID = (3 << 3) | WireType.LEN;
const ON_EXPIRY = (4 << 3) | WireType.VARINT;
const SECONDS = (1 << 3) | WireType.VARINT;
const NANOS = (2 << 3) | WireType.VARINT;

/**
 * By hand, so that the request in it is read as that of ShouldRateLimit. Of a field that occurs again, the last one
 * counts.
 */
function decodeReserve(message: Uint8Array): ReserveCall {
  const reader = new ProtobufReader(message);
  let request: RateLimitRequest = { domain: '', descriptors: [], hitsAddend: 0 };
  let [ttl, id, onExpiry]: [number, string, OnExpiry] = [0, '', 'settle'];
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === REQUEST) {
      const outerEnd = reader.enter();
      request = requestIn(reader);
      reader.leave(outerEnd);
    } else if (tag === TTL) ttl = decodeDuration(reader);
    else if (tag === ID) id = reader.text();
    else if (tag === ON_EXPIRY) onExpiry = reader.uint64() === 1 ? 'cancel' : 'settle';
    else reader.skip(tag);
  }
  return { request, ttl, id: id === '' ? undefined : id, onExpiry };
}

/** The least number of 64 bits that is negative where it has a sign. */
const FIRST_NEGATIVE = 2 ** 63;

/** In whole milliseconds; a negative one is 0. */
export function decodeDuration(reader: ProtobufReader): number {
  const outerEnd = reader.enter();
  let [seconds, nanos] = [0, 0];
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === SECONDS) seconds = reader.uint64();
    else if (tag === NANOS) nanos = reader.uint64();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return Math.max(seconds, nanos) >= FIRST_NEGATIVE ? 0 : seconds * 1000 + Math.floor(nanos / 1e6);
}

function decodeEnding<T>({ decode }: { readonly decode: (bytes: Uint8Array) => T }, message: Uint8Array): T {
  if (message.length > MAX_ENDING_BYTES) {
    throw new DecisionError('too_much_work', `the message may have at most ${MAX_ENDING_BYTES} bytes`);
  }
  try {
    return decode(message);
  } catch {
    throw new ProtobufError('it cannot be read');
  }
}

function encodeReserved({ id = '', verdict, expiresAt }: Reserved): Uint8Array {
  const seconds = Math.floor(expiresAt / 1000);
  return ReserveResponse.encode({
    id,
    expiresAt: id === '' ? undefined : { seconds: BigInt(seconds), nanos: (expiresAt - seconds * 1000) * 1e6 },
    decision: RateLimitResponse.decode(encodeResponse(verdict)),
  }).finish();
}

function encodeEnded({ id, state, descriptors }: EndedReservation): Uint8Array {
  return EndedMessage.encode({
    id,
    state: state === 'settled' ? State.SETTLED : State.CANCELLED,
    descriptors: descriptors.map(({ reserved, hits, added }) => ({
      reserved: BigInt(reserved),
      hits: BigInt(hits),
      added: BigInt(added),
    })),
  }).finish();
}
