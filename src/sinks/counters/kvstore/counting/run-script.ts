import type { Connection } from '../connections/connection';
import { isReply } from '../connections/store-error';
import type { Script } from './scripts';

/** Runs a script by its name, or by its text when the server has not seen it yet, or no longer. */
export async function runScript(
  connection: Connection,
  script: Script,
  keys: readonly string[],
  steps: string,
): Promise<unknown> {
  try {
    return await runByName(connection, script, keys, steps);
  } catch (error) {
    // The server looked for the script and did nothing, so that asking again counts nothing twice.
    if (!isUnknownScript(error)) throw error;
    return runByText(connection, script, keys, steps);
  }
}

export function runByName(
  connection: Connection,
  { sha }: Script,
  keys: readonly string[],
  steps: string,
): Promise<unknown> {
  return connection.sendForIntegers('evalsha', [sha, keys.length, ...keys, steps]);
}

/** Leaves the script known to the server, for what follows on the connection. */
export function runByText(
  connection: Connection,
  { text }: Script,
  keys: readonly string[],
  steps: string,
): Promise<unknown> {
  return connection.sendForIntegers('eval', [text, keys.length, ...keys, steps]);
}

export function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT');
}

/**
 * Whether the server refuses scripts as such to us: by its permissions, or because the command is not there. A script that
 * was run and may not count (`INCRBY` or a key is denied) is another matter.
 */
export function isScriptRefusal(error: unknown): boolean {
  return isReply(error) && REFUSAL.test(error.message);
}

const REFUSAL = /^NOPERM .*'(?:eval|evalsha)' command|^ERR unknown command ['`](?:eval|evalsha)['`]/i;
