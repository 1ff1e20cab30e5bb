import { readBoundedFile } from '../../sources/bounded-file';
import type { LoadedSettings } from '../../settings/read-settings';
import { operatorToken as tokenType } from '../../settings/values/text';
import { messageOf } from '../../text/thrown';

/** More than a token and the white space around it may have, in bytes. */
const MAX_FILE_BYTES = 4096;

/**
 * Reads the token of the operators' API: OPERATOR_TOKEN, or the file of OPERATOR_TOKEN_FILE, which is read each time, so that a token
 * can be replaced without a restart. Resolves with undefined when neither is set; rejects when the file cannot be used.
 */
export function operatorToken({ settings, nameOf }: LoadedSettings): () => Promise<string | undefined> {
  const { operatorToken: token, operatorTokenFile: file } = settings;
  if (file === undefined) return () => Promise.resolve(token);
  return async () => {
    try {
      return await readToken(file);
    } catch (cause) {
      throw new Error(`cannot use ${nameOf('operatorTokenFile')}=${file}: ${messageOf(cause)}`, { cause });
    }
  };
}

async function readToken(file: string): Promise<string> {
  const { content } = await readBoundedFile(file, MAX_FILE_BYTES);
  if (content === undefined) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`);
  const token = Buffer.from(content).toString('latin1').trim();
  // The text is a secret, and not quoted.
  if (!('value' in tokenType.parse(token))) throw new Error(`it must contain ${tokenType.allowed}`);
  return token;
}
