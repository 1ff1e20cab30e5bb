import type { Field, Row, Settings } from '../settings';
import { check } from './check';

type File = { [F in keyof Settings]: string | undefined extends Settings[F] ? F : never }[Row['field']];

/**
 * A client presents a certificate only if it has both the certificate and its key: one alone would be silently ignored.
 *
 * @param concerns what decides whether TLS is used
 */
// oxlint-disable-next-line max-params -- all four are of one kind: settings
function requirePair<const Fields extends Field>(
  concerns: readonly Fields[],
  usesTls: (settings: Pick<Settings, Fields>) => boolean,
  certificate: File,
  key: File,
) {
  return check<Fields | File>([...concerns, certificate, key], ({ settings, nameOf }) => {
    if (!usesTls(settings) || (settings[certificate] === undefined) === (settings[key] === undefined)) return undefined;
    const [present, absent] = settings[key] === undefined ? [certificate, key] : [key, certificate];
    return `${nameOf(present)} is set, but ${nameOf(absent)} is not; a certificate and its key must be set together.`;
  });
}

function requireFile(file: File) {
  return check(['grpcServerUseTls', file], ({ settings, nameOf }) =>
    settings.grpcServerUseTls && settings[file] === undefined
      ? `${nameOf('grpcServerUseTls')} is true, but ${nameOf(file)} is not set; set it to the path of a PEM file.`
      : undefined,
  );
}

export const tlsChecks = [
  requireFile('grpcServerTlsCert'),
  requireFile('grpcServerTlsKey'),
  check(['grpcServerUseTls', 'grpcClientTlsCacert'], ({ settings, nameOf }) =>
    settings.grpcClientTlsCacert !== undefined && !settings.grpcServerUseTls
      ? `${nameOf('grpcClientTlsCacert')} is set, but TLS is off; set ${nameOf('grpcServerUseTls')}=true to verify client ` +
        `certificates, or remove ${nameOf('grpcClientTlsCacert')}.`
      : undefined,
  ),
  check(['grpcClientTlsCacert', 'grpcClientTlsSan'], ({ settings, nameOf }) =>
    settings.grpcClientTlsSan !== undefined && settings.grpcClientTlsCacert === undefined
      ? `${nameOf('grpcClientTlsSan')} is set, but clients present no certificate unless ${nameOf('grpcClientTlsCacert')} ` +
        'is set; set both or neither.'
      : undefined,
  ),
  requirePair(
    ['configGrpcXdsServerUseTls'],
    (settings) => settings.configGrpcXdsServerUseTls,
    'configGrpcXdsClientTlsCert',
    'configGrpcXdsClientTlsKey',
  ),
  requirePair(
    ['kvstoreTls', 'kvstorePersecondTls', 'kvstoreUrl', 'kvstorePersecondUrl'],
    ({ kvstoreTls, kvstorePersecondTls, kvstoreUrl, kvstorePersecondUrl }) =>
      kvstoreTls ||
      kvstorePersecondTls ||
      [kvstoreUrl, kvstorePersecondUrl].some((url) => /rediss:\/\//i.test(url ?? '')),
    'kvstoreTlsClientCert',
    'kvstoreTlsClientKey',
  ),
  requirePair(
    ['plaincacheTls'],
    (settings) => settings.plaincacheTls,
    'plaincacheTlsClientCert',
    'plaincacheTlsClientKey',
  ),
];
