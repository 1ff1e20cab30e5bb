import type { NodeConnections } from '../nodes/node-connections';
import type { PlaincacheStatistics } from './plaincache-statistics';
import type { WireKey } from '../protocol/legal-key';
import { OutcomesReader, type WriteCommand, type WriteOutcome, writeCommands } from '../protocol/write-counts';

export interface WriteOptions {
  readonly statistics: PlaincacheStatistics;
  /** Receives the error of a command that the server rejected. */
  readonly onRejected: (error: Error) => void;
}

/** incr; add for keys that are absent; incr for those that another process has added in the meantime. */
const MAX_ROUNDS = 3;

/**
 * Executes commands, in order. Additions create absent keys, subtractions do not. A command whose outcome is unknown is not sent again.
 *
 * @throws what the connection throws
 */
export async function writeBatch(
  connections: NodeConnections,
  commands: readonly WriteCommand[],
  options: WriteOptions,
): Promise<void> {
  let remaining = commands;
  for (let round = 0; round < MAX_ROUNDS && remaining.length > 0; round += 1) {
    remaining = await writeOnce(connections, remaining, options);
  }
  for (const command of remaining) options.statistics.dropped(command);
}

/** @returns the commands that are left, because a key was absent or was not */
async function writeOnce(
  connections: NodeConnections,
  commands: readonly WriteCommand[],
  { statistics, onRejected }: WriteOptions,
): Promise<readonly WriteCommand[]> {
  const reader = new OutcomesReader(commands);
  try {
    await connections.write(writeCommands(commands, Date.now()), reader);
  } catch (error) {
    // No further round follows for the commands that were answered.
    for (const command of left(commands, reader.known)) statistics.dropped(command);
    throw error;
  } finally {
    commands.forEach((command, index) => statistics.wrote(command, reader.known[index]));
  }
  for (const outcome of reader.known) if (outcome instanceof Error) onRejected(outcome);
  return left(commands, reader.known);
}

function left(commands: readonly WriteCommand[], outcomes: readonly WriteOutcome[]): readonly WriteCommand[] {
  /** Keys that are created in the next round: commands that did not find them have to follow. */
  const created = new Set<WireKey>();
  const remaining: WriteCommand[] = [];
  commands.forEach((command, index) => {
    const outcome = outcomes[index];
    if (outcome === 'not stored') remaining.push({ ...command, kind: 'incr' });
    if (outcome !== 'not found') return;
    if (created.has(command.key)) remaining.push(command);
    else if (command.kind !== 'decr') {
      created.add(command.key);
      remaining.push({ ...command, kind: 'add' });
    }
  });
  return remaining;
}
