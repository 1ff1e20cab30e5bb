import { type FlagSpec, flagHelp } from '../flags';
/** The flags of weir-client; those that the Go client has are named as there. */
export const CLIENT_FLAGS = {
  dial_string: {
    kind: 'string',
    default: 'localhost:8081',
    placeholder: 'address',
    help: 'address of the server: host:port, or unix:/path/to/socket',
  },
  domain: { kind: 'string', default: '', placeholder: 'name', help: 'domain to ask about' },
  descriptors: {
    kind: 'strings',
    placeholder: 'name=value,…',
    help: 'one descriptor, its entries separated by commas',
  },
  hits_addend: {
    kind: 'number',
    default: 0,
    max: 0xffff_ffff,
    placeholder: 'n',
    help: 'hits to add for each descriptor; 0 means 1',
  },
  json: { kind: 'boolean', help: 'print the response as JSON' },
  exit_code: { kind: 'boolean', help: 'end with exit code 2 when the answer is OVER_LIMIT' },
  'grpc-use-tls': { kind: 'boolean', help: 'connect with TLS' },
  'grpc-server-ca-file': {
    kind: 'string',
    default: '',
    placeholder: 'file',
    help: 'PEM file of the CA that the server must be certified by, instead of the well-known ones',
  },
  'grpc-cert-file': { kind: 'string', default: '', placeholder: 'file', help: 'PEM file of a client certificate' },
  'grpc-key-file': {
    kind: 'string',
    default: '',
    placeholder: 'file',
    help: "PEM file of the client certificate's key",
  },
} as const satisfies FlagSpec;

export const CLIENT_HELP = `weir-client asks a rate limit service one question and prints the answer.

Usage: weir-client -domain name -descriptors name=value,… [flags]

${flagHelp(CLIENT_FLAGS)}
Exit codes: 0 OK (or any answer without -exit_code), 1 error, 2 OVER_LIMIT with -exit_code.

Example: weir-client -domain shop -descriptors user=ann,path=/buy -descriptors remote_address=10.0.0.1
`;
