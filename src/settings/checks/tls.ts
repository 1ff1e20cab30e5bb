import type { Row, Settings } from '../settings';
import { check } from './check';

type OnOff = { [F in keyof Settings]: Settings[F] extends boolean ? F : never }[Row['field']];
type File = { [F in keyof Settings]: string | undefined extends Settings[F] ? F : never }[Row['field']];

/** A client shows a certificate only with its key: one alone would be left out without a word. */
function pair(tls: OnOff, certificate: File, key: File) {
  return check([tls, certificate, key], ({ settings, nameOf }) => {
    if (!settings[tls] || (settings[certificate] === undefined) === (settings[key] === undefined)) return undefined;
    const [present, absent] = settings[key] === undefined ? [certificate, key] : [key, certificate];
    return `${nameOf(present)} is set without ${nameOf(absent)}; a certificate and its key go together.`;
  });
}

function needed(file: File) {
  return check(['grpcServerUseTls', file], ({ settings, nameOf }) =>
    settings.grpcServerUseTls && settings[file] === undefined
      ? `${nameOf('grpcServerUseTls')} needs ${nameOf(file)}.`
      : undefined,
  );
}

export const tlsChecks = [
  needed('grpcServerTlsCert'),
  needed('grpcServerTlsKey'),
  check(['grpcServerUseTls', 'grpcClientTlsCacert'], ({ settings, nameOf }) =>
    settings.grpcClientTlsCacert !== undefined && !settings.grpcServerUseTls
      ? `${nameOf('grpcClientTlsCacert')} asks callers for certificates, which needs ${nameOf('grpcServerUseTls')}=true.`
      : undefined,
  ),
  check(['grpcClientTlsCacert', 'grpcClientTlsSan'], ({ settings, nameOf }) =>
    settings.grpcClientTlsSan !== undefined && settings.grpcClientTlsCacert === undefined
      ? `${nameOf('grpcClientTlsSan')} needs ${nameOf('grpcClientTlsCacert')}: without it no caller shows a certificate.`
      : undefined,
  ),
  pair('configGrpcXdsServerUseTls', 'configGrpcXdsClientTlsCert', 'configGrpcXdsClientTlsKey'),
  pair('kvstoreTls', 'kvstoreTlsClientCert', 'kvstoreTlsClientKey'),
  pair('plaincacheTls', 'plaincacheTlsClientCert', 'plaincacheTlsClientKey'),
];
