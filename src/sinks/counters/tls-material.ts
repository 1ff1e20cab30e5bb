import type tls from 'node:tls';
import { type TlsFiles, clientTls } from '../../net/reloaded-files';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';

/** The TLS files of a store. */
export interface StoreTlsFiles extends TlsFiles {
  readonly skipHostnameVerification: boolean;
}

/** The TLS options of one connection. */
export type StoreTls = () => tls.ConnectionOptions;

/**
 * The TLS options of connections. The files are read for each new connection, so that rotated ones take effect without
 * a restart; when new ones cannot be used, the previous ones stay active and one line is logged.
 *
 * @throws Error that names the file that cannot be used, and its variable
 */
export function storeTls({ skipHostnameVerification, ...files }: StoreTlsFiles, log: Log): StoreTls {
  const context = clientTls(
    files,
    new ConditionLog(log, {
      begins: 'new TLS files of the counter store rejected; keeping the current ones',
      ends: 'the TLS files of the counter store are valid again',
      level: 'error',
    }),
  );
  context();
  return () => ({
    secureContext: context(),
    // The certificate chain is still verified.
    ...(skipHostnameVerification && { checkServerIdentity: () => undefined }),
  });
}
