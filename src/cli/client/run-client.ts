import { RateLimitResponse_Code as Code } from '../../gen/envoy/service/ratelimit/v3/rls';
import { FlagError, parseFlags } from '../flags';
import { ask } from './ask';
import { CLIENT_FLAGS, CLIENT_HELP } from './client-flags';
import { channelCredentials } from './credentials';
import { formatResponse } from './format-response';
import { parseDescriptor } from './parse-descriptor';
import { responseJson } from './response-json';
import { messageOf } from '../../text/thrown';

const TIMEOUT_MS = 10_000;

const ExitCode = { OK: 0, ERROR: 1, OVER_LIMIT: 2 } as const;

/** Where a program's text goes. */
export interface Output {
  write(text: string): unknown;
}

/**
 * The program weir-client: one question to a rate limit service.
 *
 * @param argv without interpreter and program
 * @returns the exit code
 */
export async function runClient(
  argv: readonly string[],
  out: Output,
  err: Output,
  timeoutMs: number = TIMEOUT_MS,
): Promise<number> {
  try {
    const { help, values, rest } = parseFlags(argv, CLIENT_FLAGS);
    if (help) {
      out.write(CLIENT_HELP);
      return ExitCode.OK;
    }
    if (rest[0] !== undefined) throw new FlagError(`unexpected argument "${rest[0]}"`);
    if (values.domain === '') throw new FlagError('flag -domain is missing');
    if (values.descriptors.length === 0) throw new FlagError('flag -descriptors is missing');

    const descriptors = values.descriptors.map(parseDescriptor);
    const request = { domain: values.domain, descriptors, hitsAddend: values.hits_addend };
    const response = await ask(values.dial_string, channelCredentials(values), request, timeoutMs);
    out.write(`${values.json ? responseJson(response) : formatResponse(descriptors, response)}\n`);
    return values.exit_code && response.overallCode === Code.OVER_LIMIT ? ExitCode.OVER_LIMIT : ExitCode.OK;
  } catch (error) {
    const hint = error instanceof FlagError ? '\nweir-client -h lists the flags' : '';
    err.write(`weir-client: ${messageOf(error)}${hint}\n`);
    return ExitCode.ERROR;
  }
}
