import type { Field, Row, Settings } from '../settings';
import { check } from './check';

type File = { [F in keyof Settings]: string | undefined extends Settings[F] ? F : never }[Row['field']];

/**
 * A client presents a certificate only if it has both the certificate and its key: one alone would be silently ignored.
 *
 * @param concerns what decides whether the client is used, with TLS
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

function requestsTls(url = ''): boolean {
  return /rediss:\/\//i.test(url);
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
    ['configType', 'configGrpcXdsServerUseTls'],
    ({ configType, configGrpcXdsServerUseTls }) => configType === 'GRPC_XDS_SOTW' && configGrpcXdsServerUseTls,
    'configGrpcXdsClientTlsCert',
    'configGrpcXdsClientTlsKey',
  ),
  requirePair(
    ['backendType', 'kvstorePersecond', 'kvstoreTls', 'kvstorePersecondTls', 'kvstoreUrl', 'kvstorePersecondUrl'],
    ({ backendType, kvstorePersecond, kvstoreTls, kvstorePersecondTls, kvstoreUrl, kvstorePersecondUrl }) =>
      backendType === 'kvstore' &&
      (kvstoreTls ||
        requestsTls(kvstoreUrl) ||
        (kvstorePersecond && (kvstorePersecondTls || requestsTls(kvstorePersecondUrl)))),
    'kvstoreTlsClientCert',
    'kvstoreTlsClientKey',
  ),
  requirePair(
    ['backendType', 'plaincacheTls'],
    ({ backendType, plaincacheTls }) => backendType === 'plaincache' && plaincacheTls,
    'plaincacheTlsClientCert',
    'plaincacheTlsClientKey',
  ),
];
