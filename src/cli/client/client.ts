import {
  type RateLimitResponse,
  RateLimitResponse_Code as Code,
  type RateLimitRequest,
} from '../../gen/envoy/service/ratelimit/v3/rls';
import { withPort } from '../api';
import { booleanFlag, decimalFlag, FlagError, type FlagValues, listFlag, numberFlag, textFlag } from '../flags';
import { Exit, JSON_FLAG, type Output, type Program } from '../program';
import { parseRequest } from '../request';
import { formatRepetition, repeat } from './repeat';
import { formatResponse, responseJson } from './response';
import { RateLimitClient, TLS_FLAGS } from './rate-limit-client';

const ADDRESS_HELP = 'address of the server: host:port, or unix:/path/to/socket; without GRPC_PORT, its port is 8081';

const CLIENT_FLAGS = {
  address: { ...textFlag('address', ADDRESS_HELP, 'localhost:$GRPC_PORT'), alias: 'dial_string' },
  domain: textFlag('name', 'domain of the request (required)'),
  descriptors: listFlag('name=value,…', 'one descriptor (required): its entries, separated by commas'),
  hits_addend: numberFlag(0xffff_ffff, 'hits to count for each descriptor; 0 means 1'),
  check: booleanFlag('ask whether anything is left, and count nothing (CheckRateLimit of Kuadrant)'),
  report: booleanFlag('count the hits also beyond a limit (Report of Kuadrant)'),
  n: numberFlag(10_000_000, 'how often to send the request', 1),
  rate: decimalFlag(100_000, 'requests per second, with -n; 0: ten at a time, as fast as they are answered'),
  json: JSON_FLAG,
  exit_code: booleanFlag('exit with code 3 if a response is OVER_LIMIT'),
  timeout: { ...numberFlag(3600, 'how long a call may take', 10), placeholder: 'seconds' },
  ...TLS_FLAGS,
};

type Values = FlagValues<typeof CLIENT_FLAGS>;

/**
 * The program weir-client: sends a request to a rate limit service, once or repeatedly, and prints the response or a
 * summary.
 */
export const CLIENT: Program<typeof CLIENT_FLAGS> = {
  name: 'weir-client',
  flags: CLIENT_FLAGS,
  help: [
    `weir-client sends a request to a rate limit service and prints the response, or of several responses a summary.

Usage: weir-client -dial_string host:port -domain name -descriptors name=value,… [flags]
`,
    `Exit codes: 0 done, 1 no response, 2 wrong use, 3 OVER_LIMIT with -exit_code.

Examples: weir-client -domain shop -descriptors user=ann,path=/buy -descriptors remote_address=10.0.0.1
          weir-client -domain shop -descriptors user=ann -n 100 -rate 50
`,
  ],
  async run({ values, rest, environment, stderr }) {
    const request = requestOf(values, rest);
    const address = withPort(values.address, ['GRPC_PORT', environment['GRPC_PORT']], 8081);
    const client = new RateLimitClient(address, values, values.timeout * 1000);
    try {
      const method = values.check ? 'check' : values.report ? 'report' : 'count';
      if (values.n > 1) return await sendRepeatedly(() => client.send(request, method), values, stderr);
      const response = await client.send(request, method);
      const exitCode = exitCodeOf(values, response.overallCode === Code.OVER_LIMIT);
      const answer = values.json ? await responseJson(response) : undefined;
      return { exitCode, answer, text: () => formatResponse(request.descriptors, response) };
    } finally {
      client.close();
    }
  },
};

async function sendRepeatedly(send: () => Promise<RateLimitResponse>, values: Values, stderr: Output) {
  const summary = await repeat(send, { count: values.n, rate: values.rate, progress: stderr });
  const hasFailed = Object.keys(summary.failures).length > 0;
  const exitCode = hasFailed ? Exit.FAILED : exitCodeOf(values, summary.codes['OVER_LIMIT'] !== undefined);
  return { exitCode, answer: summary, text: () => formatRepetition(summary) };
}

function exitCodeOf({ exit_code: isAsked }: Values, isOverLimit: boolean) {
  return isAsked && isOverLimit ? Exit.OVER_LIMIT : Exit.DONE;
}

function requestOf(values: Values, rest: readonly string[]): RateLimitRequest {
  if (rest[0] !== undefined) throw new FlagError(`unexpected argument "${rest[0]}"`);
  const descriptors = parseRequest(values.domain, values.descriptors).map((entries) => {
    return { entries: [...entries], limit: undefined, hitsAddend: undefined, isNegativeHits: false };
  });
  if (values.check && values.report) throw new FlagError('flags -check and -report cannot be used together');
  if (values.n === 0) throw new FlagError('flag -n requires at least 1');
  if (values.timeout === 0) throw new FlagError('flag -timeout requires at least 1');
  return { domain: values.domain, descriptors, hitsAddend: values.hits_addend };
}
