import type { Connection } from '../connections/connection';
import { isReply } from '../connections/store-error';
import type { Script } from './scripts';

/** KEYS, and ARGV[1]. */
export interface ScriptArguments {
  readonly keys: readonly string[];
  readonly argument: string;
}

/** Runs a script by its SHA-1, or by its text when the server does not have it (NOSCRIPT). */
export async function runScript(connection: Connection, script: Script, args: ScriptArguments): Promise<unknown> {
  try {
    return await runByHash(connection, script, args);
  } catch (error) {
    // The server has not run anything, so the second call does not count twice.
    if (!isUnknownScript(error)) throw error;
    return runByText(connection, script, args);
  }
}

export function runByHash(
  connection: Connection,
  { sha }: Script,
  { keys, argument }: ScriptArguments,
): Promise<unknown> {
  return connection.sendForIntegers('evalsha', [sha, keys.length, ...keys, argument]);
}

/** Also loads the script into the server, so that later commands can run it by its hash. */
export function runByText(
  connection: Connection,
  { text }: Script,
  { keys, argument }: ScriptArguments,
): Promise<unknown> {
  return connection.sendForIntegers('eval', [text, keys.length, ...keys, argument]);
}

export function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT');
}

/**
 * Whether the server rejects scripts altogether: the user lacks the permission, or the command does not exist. Not when the
 * script ran and a command or key in it was denied.
 */
export function isScriptRejection(error: unknown): boolean {
  return isReply(error) && SCRIPT_REJECTION.test(error.message);
}

const SCRIPT_REJECTION = /^NOPERM .*'(?:eval|evalsha)' command|^ERR unknown command ['`](?:eval|evalsha)['`]/i;
