import { decodeRequest } from '../../../src/grpc/rate-limit/decode-request';
import { ProtobufError } from '../../../src/grpc/rate-limit/protobuf-reader';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';
import { unitByNumber } from '../../../src/rules/unit';

/** A request as the recordings have it: see bench/conformance/protobuf/main.go. */
export interface ParsedRequest {
  domain: string;
  descriptors: {
    entries: [string, string][];
    limit?: { requestsPerUnit: number; unit: number };
    hitsAddend?: string;
    isNegativeHits: boolean;
  }[];
  hitsAddend: number;
}

/** The same request as the decoder returns it; see {@link withoutRounding}. */
export function asDecoded({ descriptors, ...request }: ParsedRequest): RateLimitRequest {
  return {
    ...request,
    descriptors: descriptors.map(({ entries, limit, hitsAddend, isNegativeHits }) => ({
      entries: entries.map(([key, value]) => ({ key, value })),
      limit: limit && { ...limit, unit: unitByNumber(limit.unit) },
      hitsAddend: hitsAddend === undefined ? NO_HITS_ADDEND : countable(Number(hitsAddend)),
      isNegativeHits,
    })),
  };
}

/** A decoded request without the differences that rounding makes to hits above 2^53 - 1, which are rejected. */
export function withoutRounding(request: RateLimitRequest): RateLimitRequest {
  const descriptors = request.descriptors.map((it) => ({ ...it, hitsAddend: countable(it.hitsAddend) }));
  return { ...request, descriptors };
}

function countable(hits: number): number {
  return Math.min(hits, 2 ** 53);
}

/** The decoded request; undefined if the decoder rejects it. */
export function decode(bytes: Buffer): RateLimitRequest | undefined {
  try {
    return withoutRounding(decodeRequest(bytes));
  } catch (error) {
    if (error instanceof ProtobufError) return undefined;
    throw error;
  }
}
