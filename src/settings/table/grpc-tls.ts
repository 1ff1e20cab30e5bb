import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { filePath, text } from '../values/text';

export const grpcTlsSettings = group({
  title: 'TLS of the gRPC listener',
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
      help: 'Certificate chain of the server, PEM; read again when it changes.',
    }),
    setting({
      field: 'grpcServerTlsKey',
      name: 'GRPC_SERVER_TLS_KEY',
      type: filePath,
      default: undefined,
      help: 'Private key of that certificate, PEM; read again when it changes.',
    }),
    setting({
      field: 'grpcClientTlsCacert',
      name: 'GRPC_CLIENT_TLS_CACERT',
      type: filePath,
      default: undefined,
      help: 'CA of the callers, PEM; when set, every caller needs a certificate of it. Read again when it changes.',
    }),
    setting({
      field: 'grpcClientTlsSan',
      name: 'GRPC_CLIENT_TLS_SAN',
      type: text('DNS name'),
      default: undefined,
      help: "DNS name that a caller's certificate must carry.",
    }),
  ],
});
