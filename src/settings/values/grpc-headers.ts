import { type Pairs, pairs } from './pairs';
import type { ValueType } from './value-type';

/** Headers of a gRPC call, in the characters that its protocol allows; names are sent in lower case. */
export const grpcHeaders: ValueType<Pairs> = pairs({
  separator: ':',
  emptyValues: 'allowed',
  problem(key, value) {
    if (!/^[\da-z_.-]+$/i.test(key))
      return 'has a name that gRPC does not allow: letters, digits, "_", "." and "-" only';
    if (/^grpc-/i.test(key)) return 'has a name that begins with "grpc-", which gRPC keeps for itself';
    if (!/^[ -~]*$/.test(value)) return 'has a value with characters beyond printable ASCII';
    return undefined;
  },
});
