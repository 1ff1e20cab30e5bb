import { type FlagSpec, flagHelp } from '../flags';

/** The flags of weir-admin, those of requests as in weir-client. */
export const ADMIN_FLAGS = {
  address: {
    kind: 'string',
    default: 'localhost:6070',
    placeholder: 'host:port',
    help: 'address of the debug listener',
  },
  token_file: {
    kind: 'string',
    default: '',
    placeholder: 'file',
    help: 'file with the operator token; otherwise OPERATOR_TOKEN or the file of OPERATOR_TOKEN_FILE',
  },
  domain: { kind: 'string', default: '', placeholder: 'name', help: 'domain' },
  descriptors: {
    kind: 'strings',
    placeholder: 'name=value,…',
    help: 'one descriptor: its entries, separated by commas',
  },
  hits_addend: { kind: 'number', default: 0, max: 0xffff_ffff, placeholder: 'n', help: 'hits to explain; 0 means 1' },
  count: {
    kind: 'string',
    default: '',
    placeholder: 'n',
    help: 'count to set',
  },
  top: { kind: 'number', default: 20, max: 1000, placeholder: 'n', help: 'how many callers to list' },
  json: { kind: 'boolean', help: 'print the answer as JSON' },
} as const satisfies FlagSpec;

export const ADMIN_HELP = `weir-admin shows and changes what a running service does, with the operators' API.

Usage: weir-admin COMMAND [flags]

  rules [-domain name]                                     the active rules and what they counted
  explain -domain name -descriptors name=value,…           what would be answered, and why
  counter get -domain name -descriptors name=value,…       the counter of a descriptor
  counter set -domain name -descriptors name=value,… -count n
  counter clear -domain name -descriptors name=value,…
  top [-domain name] [-top n]                              the callers limited most
  health                                                   whether the service is healthy

${flagHelp(ADMIN_FLAGS)}
Exit codes: 0 done, 1 error, or the service is unhealthy.

Example: weir-admin explain -domain shop -descriptors user=ann,path=/buy
`;
