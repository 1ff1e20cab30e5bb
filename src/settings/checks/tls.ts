import type { Row, Settings } from '../settings';
import { check } from './check';

type Switch = { [F in keyof Settings]: Settings[F] extends boolean ? F : never }[Row['field']];
type File = { [F in keyof Settings]: string | undefined extends Settings[F] ? F : never }[Row['field']];

/** A client presents a certificate only if it has both the certificate and its key: one alone would be silently ignored. */
function requirePair(tls: Switch, certificate: File, key: File) {
  return check([tls, certificate, key], ({ settings, nameOf }) => {
    if (!settings[tls] || (settings[certificate] === undefined) === (settings[key] === undefined)) return undefined;
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
  requirePair('configGrpcXdsServerUseTls', 'configGrpcXdsClientTlsCert', 'configGrpcXdsClientTlsKey'),
  requirePair('kvstoreTls', 'kvstoreTlsClientCert', 'kvstoreTlsClientKey'),
  requirePair('plaincacheTls', 'plaincacheTlsClientCert', 'plaincacheTlsClientKey'),
];
