import type tls from 'node:tls';
import { clientTls, fileOf } from '../../net/reloaded-files';
import type { Section } from '../../settings/settings';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';

/** The TLS files of a store. */
export interface StoreTlsFiles extends Omit<Section<'plaincacheTls'>, 'variables'> {
  /** The names of the variables that hold the paths, for messages. */
  readonly variables: Readonly<Record<'cacert' | 'clientCert' | 'clientKey', string>>;
}

/** The TLS options of one connection. */
export type StoreTls = () => tls.ConnectionOptions;

/**
 * The TLS options of connections. The files are read for each new connection, so that rotated ones take effect without a
 * restart; when new ones cannot be used, the previous ones stay active and one line is logged.
 *
 * @throws Error that names the file that cannot be used, and its variable
 */
export function storeTls(files: StoreTlsFiles, log: Log): StoreTls {
  const context = clientTls(
    { ca: fileOf(files, 'cacert'), cert: fileOf(files, 'clientCert'), key: fileOf(files, 'clientKey') },
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
    ...(files.skipHostnameVerification && { checkServerIdentity: () => undefined }),
  });
}
