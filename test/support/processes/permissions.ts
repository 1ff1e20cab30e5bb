/**
 * What stands before a command so that permissions of files hold for it: root may read everything, unless it gives that up. It
 * stays root, so that it still reaches its own files wherever the checkout lies.
 */
export function underPermissions(command: readonly [string, ...string[]]): readonly [string, ...string[]] {
  if (process.getuid?.() !== 0) return command;
  const rights = '-dac_override,-dac_read_search';
  return ['setpriv', '--bounding-set', rights, '--inh-caps', rights, ...command];
}
