import type { Connection } from '../connections/connection';
import { isReply } from '../connections/store-error';
import type { Script } from './scripts';

/** KEYS, and ARGV[1]. */
export interface ScriptArguments {
  readonly keys: readonly { readonly key: string }[];
  readonly argument: string;
}

/** Runs a script by its SHA-1, or by its text when the server does not have it (NOSCRIPT). */
export function runScript(connection: Connection, script: Script, args: ScriptArguments): Promise<unknown> {
  return runByHash(connection, script, args).catch((error: unknown) => {
    // The server has not run anything, so the second call does not count twice.
    if (!isUnknownScript(error)) throw error;
    return runByText(connection, script, args);
  });
}

export function runByHash(connection: Connection, { sha }: Script, args: ScriptArguments): Promise<unknown> {
  return connection.sendEncoded('evalsha', encodeCall('evalsha', sha, args));
}

/** Also loads the script into the server, so that later commands can run it by its hash. */
export function runByText(connection: Connection, { text }: Script, args: ScriptArguments): Promise<unknown> {
  return connection.sendEncoded('eval', encodeCall('eval', text, args));
}

/** A script call in the Redis protocol: the command, the script, the number of keys, the keys, the argument. */
function encodeCall(command: string, script: string, { keys, argument }: ScriptArguments): string {
  const count = String(keys.length);
  let call = `*${keys.length + 4}`;
  for (const text of [command, script, count]) call += headerOf(text) + text;
  for (const { key } of keys) {
    call += headerOf(key);
    call += key;
  }
  return `${call}${headerOf(argument)}${argument}\r\n`;
}

/** What is written before a text, with the end of the line before it. */
function headerOf(text: string): string {
  const bytes = Buffer.byteLength(text);
  return HEADERS[bytes] ?? header(bytes);
}

function header(bytes: number): string {
  return `\r\n$${bytes}\r\n`;
}

/** The headers of short texts, because building them takes as long as the rest of encoding a key. */
const HEADERS = Array.from({ length: 256 }, (_, bytes) => header(bytes));

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
