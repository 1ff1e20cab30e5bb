import { operatorToken } from '../../settings/values/value-type';
import { readSecretFile } from '../../sources/secret-files';
import { messageOf } from '../../text/thrown';
import { FlagError } from '../flags';

/**
 * The operator token: that of a file, or the variable OPERATOR_TOKEN, or the file of OPERATOR_TOKEN_FILE. It is no flag, because other
 * users of the machine can see command lines.
 *
 * @throws {FlagError} when the file cannot be read, or there is no token in it; the message does not quote it
 */
export function tokenFrom(file: string, environment: NodeJS.ProcessEnv): string | undefined {
  // As for the service, blanks around a value are ignored, and an empty variable is not set.
  const token = environment['OPERATOR_TOKEN']?.trim() || undefined;
  const tokenFile = environment['OPERATOR_TOKEN_FILE']?.trim() || undefined;
  const path = file === '' && token === undefined ? tokenFile : file;
  if (path !== undefined && path !== '') return tokenIn(path);
  if (token === undefined || isToken(token)) return token;
  throw new FlagError(`OPERATOR_TOKEN is invalid; allowed: ${operatorToken.allowed}`);
}

function tokenIn(path: string): string {
  try {
    // As the service reads it.
    const text = readSecretFile(path).trim();
    if (isToken(text)) return text;
  } catch (cause) {
    throw unusable(messageOf(cause), { cause });
  }
  throw unusable(`it must contain ${operatorToken.allowed}`);
}

function unusable(reason: string, options?: ErrorOptions): FlagError {
  return new FlagError(`cannot use the file of the operator token: ${reason}`, options);
}

/** The service has no other tokens. */
function isToken(text: string): boolean {
  return 'value' in operatorToken.parse(text);
}
