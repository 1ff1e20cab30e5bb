import { type FlagSpec, flagHelp } from '../flags';

/** The flags of weir-client. Those that the client of the Go service has are named as there. */
export const CLIENT_FLAGS = {
  dial_string: {
    kind: 'string',
    default: 'localhost:8081',
    placeholder: 'address',
    help: 'address of the server: host:port, or unix:/path/to/socket',
  },
  domain: { kind: 'string', default: '', placeholder: 'name', help: 'domain of the request (required)' },
  descriptors: {
    kind: 'strings',
    placeholder: 'name=value,…',
    help: 'one descriptor (required): its entries, separated by commas',
  },
  hits_addend: {
    kind: 'number',
    default: 0,
    max: 0xffff_ffff,
    placeholder: 'n',
    help: 'hits to count for each descriptor; 0 means 1',
  },
  explain: {
    kind: 'boolean',
    help: "show what would be answered, and why, with the operators' API of -debug_address; nothing is counted",
  },
  debug_address: {
    kind: 'string',
    default: 'localhost:6070',
    placeholder: 'host:port',
    help: 'address of the debug listener, for -explain; the token is in OPERATOR_TOKEN or the file of OPERATOR_TOKEN_FILE',
  },
  json: { kind: 'boolean', help: 'print the response as JSON' },
  exit_code: { kind: 'boolean', help: 'exit with code 2 if the response is OVER_LIMIT' },
  'grpc-use-tls': { kind: 'boolean', help: 'connect with TLS' },
  'grpc-server-ca-file': {
    kind: 'string',
    default: '',
    placeholder: 'file',
    help: 'PEM file with the CA of the server, trusted instead of the CAs of the system',
  },
  'grpc-cert-file': { kind: 'string', default: '', placeholder: 'file', help: 'PEM file with the client certificate' },
  'grpc-key-file': {
    kind: 'string',
    default: '',
    placeholder: 'file',
    help: 'PEM file with the private key of the client certificate',
  },
} as const satisfies FlagSpec;

export const CLIENT_HELP = `weir-client sends one request to a rate limit service and prints the response.

Usage: weir-client -domain name -descriptors name=value,… [flags]

${flagHelp(CLIENT_FLAGS)}
Exit codes: 0 response received, 1 error, 2 OVER_LIMIT with -exit_code.

Example: weir-client -domain shop -descriptors user=ann,path=/buy -descriptors remote_address=10.0.0.1
`;
