import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Certificate, newAuthority } from '../../support/data/certificates';
import { freePorts } from '../../support/processes/free-ports';
import { KeptProcess } from '../../support/processes/kept-process';
import { until } from '../../support/waiting/until';
import type { CollectorPorts } from './collector-process';
import { isListening } from '../../support/processes/is-listening';

const ENVOY = join(__dirname, '../../../.servers/envoy/envoy/_bin/envoy');

export interface GatewayOptions {
  readonly collector: CollectorPorts;
  /** The headers that a request to each port of the collector requires. */
  readonly required: Readonly<Record<keyof CollectorPorts, Readonly<Record<string, string>>>>;
}

/**
 * A real Envoy in front of a collector: TLS with a certificate of a private authority, mutual authentication, and required
 * headers.
 */
export class TlsGateway implements AsyncDisposable {
  readonly #kept: KeptProcess;
  readonly #folder: string;
  private constructor(
    readonly port: number,
    /** Files for OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY. */
    readonly files: { readonly ca: string; readonly cert: string; readonly key: string },
    kept: KeptProcess,
    folder: string,
  ) {
    this.#kept = kept;
    this.#folder = folder;
  }

  static async start({ collector, required }: GatewayOptions): Promise<TlsGateway> {
    const folder = await mkdtemp(join(tmpdir(), 'weir-gateway-'));
    const authority = newAuthority();
    const [own, client] = [authority.issue('127.0.0.1', 'localhost'), authority.issue('weir')];
    authority.dispose();
    const files = { ca: join(folder, 'ca.pem'), cert: join(folder, 'client.pem'), key: join(folder, 'client.key') };
    await Promise.all([
      writeFile(files.ca, authority.ca),
      writeFile(files.cert, client.cert),
      writeFile(files.key, client.key),
    ]);
    const [port] = await freePorts(1);
    const config = join(folder, 'envoy.json');
    await writeFile(config, JSON.stringify(bootstrap({ port, own, ca: authority.ca, collector, required })));
    const kept = new KeptProcess([ENVOY, '-c', config, '--disable-hot-restart', '--concurrency', '1', '-l', 'warning']);
    const gateway = new TlsGateway(port, files, kept, folder);
    await until('Envoy listens', () => isListening(port));
    return gateway;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept.crash();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

interface Bootstrap extends GatewayOptions {
  readonly port: number;
  readonly own: Certificate;
  readonly ca: string;
}

function bootstrap({ port, own, ca, collector, required }: Bootstrap): object {
  function route(name: keyof CollectorPorts, prefix: string): object {
    const headers = Object.entries(required[name]).map(([header, exact]) => ({
      name: header,
      string_match: { exact },
    }));
    return { match: { prefix, headers }, route: { cluster: name } };
  }
  const routes = [
    route('grpc', '/opentelemetry.proto.collector.trace.v1.TraceService/'),
    route('http', '/v1/traces'),
    { match: { prefix: '/' }, direct_response: { status: 401 } },
  ];
  const connections = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'otlp',
    route_config: { virtual_hosts: [{ name: 'otlp', domains: ['*'], routes }] },
    http_filters: [
      {
        name: 'router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  const tls = {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
    require_client_certificate: true,
    common_tls_context: {
      alpn_protocols: ['h2', 'http/1.1'],
      tls_certificates: [{ certificate_chain: { inline_string: own.cert }, private_key: { inline_string: own.key } }],
      validation_context: { trusted_ca: { inline_string: ca } },
    },
  };
  const listener = {
    address: address(port),
    filter_chains: [
      {
        filters: [{ name: 'connections', typed_config: connections }],
        transport_socket: { name: 'tls', typed_config: tls },
      },
    ],
  };
  const clusters = [cluster('http', collector.http), { ...cluster('grpc', collector.grpc), ...HTTP2 }];
  return { static_resources: { listeners: [listener], clusters } };
}

function cluster(name: string, port: number): object {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }];
  return { name, load_assignment: { cluster_name: name, endpoints } };
}

const HTTP2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

function address(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
