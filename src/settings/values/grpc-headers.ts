import { type Pairs, pairs } from './pairs';
import type { ValueType } from './value-type';

/** Some of these would keep a call from starting, the others would be written over without a word. */
const KEPT_BY_PROTOCOL = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'content-length', 'host'],
  ...['te', 'content-type', 'user-agent'],
]);

/** Headers of a gRPC call, in the characters that its protocol allows; names are sent in lower case. */
export const grpcHeaders: ValueType<Pairs> = pairs({
  separator: ':',
  emptyValues: 'allowed',
  problem(key, value) {
    if (!/^[\da-z_.-]+$/i.test(key))
      return 'has a name that gRPC does not allow: letters, digits, "_", "." and "-" only';
    if (/^grpc-/i.test(key)) return 'has a name that begins with "grpc-", which gRPC keeps for itself';
    if (KEPT_BY_PROTOCOL.has(key.toLowerCase())) return 'has a name that HTTP/2 and gRPC keep for themselves';
    if (!/^[ -~]*$/.test(value)) return 'has a value with characters beyond printable ASCII';
    return undefined;
  },
});
