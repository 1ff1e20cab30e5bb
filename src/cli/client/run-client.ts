import { RateLimitResponse_Code as Code } from '../../gen/envoy/service/ratelimit/v3/rls';
import { messageOf } from '../../text/thrown';
import type { Explanation } from '../../streams/ports/operator';
import { callApi } from '../operators/call-api';
import { formatExplanation } from '../operators/format-explanation';
import { tokenFrom } from '../operators/operator-token';
import { VERSION } from '../version';
import { visibleJson } from '../visible';
import { FlagError, parseFlags } from '../flags';
import { CLIENT_FLAGS, CLIENT_HELP } from './client-flags';
import { channelCredentials } from './credentials';
import { formatResponse } from './format-response';
import { parseDescriptor } from './parse-descriptor';
import { responseJson } from './response-json';
import { sendRequest } from './send-request';

const TIMEOUT_MS = 10_000;

const ExitCode = { OK: 0, ERROR: 1, OVER_LIMIT: 2 } as const;

/** A stream that the program writes text to. */
export interface Output {
  write(text: string): unknown;
}

export interface ClientOptions {
  readonly stdout: Output;
  readonly stderr: Output;
  /** The timeout of the call, including the time to connect. */
  readonly timeoutMs?: number | undefined;
  /** Where the operator token is, for -explain. */
  readonly environment?: NodeJS.ProcessEnv | undefined;
}

/**
 * The program weir-client: sends one request to a rate limit service and prints the response.
 *
 * @param argv the command line without interpreter and program
 * @returns the exit code
 */
export async function runClient(argv: readonly string[], options: ClientOptions): Promise<number> {
  const { stdout, stderr, timeoutMs = TIMEOUT_MS, environment = {} } = options;
  try {
    const { information, values, rest } = parseFlags(argv, CLIENT_FLAGS);
    if (information !== undefined) {
      stdout.write(information === 'help' ? CLIENT_HELP : `weir-client ${VERSION}\n`);
      return ExitCode.OK;
    }
    if (rest[0] !== undefined) throw new FlagError(`unexpected argument "${rest[0]}"`);
    if (values.domain === '') throw new FlagError('flag -domain is required');
    if (values.descriptors.length === 0) throw new FlagError('flag -descriptors is required');

    const descriptors = values.descriptors.map(parseDescriptor);
    if (values.explain) {
      const target = { address: values.debug_address, token: tokenFrom('', environment), timeoutMs };
      const body = {
        domain: values.domain,
        descriptors: descriptors.map(({ entries }) => ({ entries })),
        hitsAddend: values.hits_addend,
      };
      const answer = await callApi(target, { method: 'POST', path: 'explanations', body });
      const explanation = answer as Explanation;
      stdout.write(`${values.json ? visibleJson(answer) : formatExplanation(explanation)}\n`);
      const isOver = explanation.answer?.overallCode === 'OVER_LIMIT';
      return values.exit_code && isOver ? ExitCode.OVER_LIMIT : ExitCode.OK;
    }
    const request = { domain: values.domain, descriptors, hitsAddend: values.hits_addend };
    const credentials = channelCredentials(values);
    const response = await sendRequest(request, {
      address: values.dial_string,
      credentials,
      isTls: values['grpc-use-tls'],
      hasCertificate: values['grpc-cert-file'] !== '',
      timeoutMs,
    });
    stdout.write(`${values.json ? responseJson(response) : formatResponse(descriptors, response)}\n`);
    return values.exit_code && response.overallCode === Code.OVER_LIMIT ? ExitCode.OVER_LIMIT : ExitCode.OK;
  } catch (error) {
    const hint = error instanceof FlagError ? '\nRun weir-client -h for a list of the flags.' : '';
    stderr.write(`weir-client: ${messageOf(error)}${hint}\n`);
    return ExitCode.ERROR;
  }
}
