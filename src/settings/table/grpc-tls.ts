import { is, isSet } from './condition';
import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { filePath, text } from '../values/text';

export const grpcTlsSettings = group({
  title: 'TLS of the gRPC listener',
  requires: [is('GRPC_SERVER_USE_TLS', 'true')],
  settings: [
    setting({
      field: 'grpcServerUseTls',
      name: 'GRPC_SERVER_USE_TLS',
      type: boolean,
      default: false,
      help: 'Serves gRPC over TLS.',
    }),
    setting({
      field: 'grpcServerTlsCert',
      name: 'GRPC_SERVER_TLS_CERT',
      type: filePath,
      default: undefined,
      help: 'PEM file with the certificate chain of the server; reloaded when it changes.',
    }),
    setting({
      field: 'grpcServerTlsKey',
      name: 'GRPC_SERVER_TLS_KEY',
      type: filePath,
      default: undefined,
      help: 'PEM file with the private key of that certificate; reloaded when it changes.',
    }),
    setting({
      field: 'grpcClientTlsCacert',
      name: 'GRPC_CLIENT_TLS_CACERT',
      type: filePath,
      default: undefined,
      help: 'PEM file with the CA of client certificates; if set, every client must present one. Reloaded when it changes.',
    }),
    setting({
      field: 'grpcClientTlsSan',
      name: 'GRPC_CLIENT_TLS_SAN',
      type: text('DNS name'),
      default: undefined,
      requires: [isSet('GRPC_CLIENT_TLS_CACERT')],
      help: 'DNS name that the client certificate must contain.',
    }),
  ],
});
