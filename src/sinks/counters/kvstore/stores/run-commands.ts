import { DecisionError } from '../../../../limiter/decision-error';
import type { Connection } from '../connections/connection';
import { isReply } from '../connections/store-error';
import type { SendCommand } from './store';

/** What commands returned, or the error of their key: an error reply, or what is wrong with the value. */
export type CommandsOutcome<T> = { readonly value: T } | { readonly error: Error };

/** Runs commands on a connection. Rejects when the connection is lost. @param isAsking each command is preceded by ASKING */
export async function runCommands<T>(
  connection: Connection,
  commands: (send: SendCommand) => Promise<T>,
  isAsking = false,
): Promise<CommandsOutcome<T>> {
  const send: SendCommand = async (name, ...args) => {
    // An error of ASKING shows in the reply to the command that follows.
    if (isAsking) connection.send('ASKING').catch(() => undefined);
    try {
      return await connection.send(name, ...args);
    } catch (error) {
      if (isReply(error)) return error;
      throw error;
    }
  };
  try {
    return { value: await commands(send) };
  } catch (error) {
    if (isReply(error) || error instanceof DecisionError) return { error };
    throw error;
  }
}
