/**
 * The prefix of a command that makes file permissions apply to it: root may read every file unless it drops that
 * capability. The command still runs as root, so that it can reach its own files wherever the checkout is.
 */
export function underPermissions(command: readonly [string, ...string[]]): readonly [string, ...string[]] {
  if (process.getuid?.() !== 0) return command;
  const rights = '-dac_override,-dac_read_search';
  return ['setpriv', '--bounding-set', rights, '--inh-caps', rights, ...command];
}
