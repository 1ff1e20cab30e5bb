import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020';
import { parse, stringify } from 'yaml';
import { CHECK } from '../../src/cli/check/check';
import { runOf } from '../cli/run-program';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { LEAST_DRAIN, STOP_TIME } from '../../src/streams/drain';
import { readSettings } from '../../src/settings/read-settings';
import { parseNanoseconds } from '../../src/text/duration';
import {
  type Labels,
  type Manifest,
  type Metadata,
  type PodSpec,
  ROOT,
  type Selector,
  type ServiceSpec,
  render,
  renderingOf,
  renderings,
  selects,
  valuesIn,
} from './manifests';
import { TemporaryFolder } from '../support/data/temporary-folder';

interface Schemas {
  readonly kinds: Readonly<Record<string, object>>;
  readonly definitions: Readonly<Record<string, object>>;
}

/** The strict schemas of Kubernetes and of the Prometheus operator: see test/README.md. */
const schemas = JSON.parse(readFileSync(join(ROOT, 'test/deploy/schemas.json'), 'utf8')) as Schemas;
// All of them in one document, and references as calls: compiling is most of the time of this file.
const ajv = new Ajv2020({
  strict: false,
  validateSchema: false,
  validateFormats: false,
  allErrors: true,
  inlineRefs: false,
});
ajv.addSchema({ $id: 'kubernetes', ...schemas });

function complaintsAbout(manifest: Manifest): readonly string[] {
  const kind = `${manifest.apiVersion}/${manifest.kind}`;
  const validate = ajv.getSchema(`kubernetes#/kinds/${kind.replaceAll('/', '~1')}`);
  if (validate === undefined) return [`there is no schema of ${kind}`];
  if (validate(manifest) === true) return [];
  return validate.errors!.map(({ instancePath, message }) => `${kind}${instancePath} ${message}`);
}

/** The paths of all nulls, which Kubernetes would take for absent values. */
function nullsIn(value: unknown, path = ''): readonly string[] {
  if (value === null) return [path];
  if (typeof value !== 'object') return [];
  return Object.entries(Object(value)).flatMap(([key, inner]) => nullsIn(inner, `${path}/${key}`));
}

/** Variables of Node and OpenTelemetry. */
const FOREIGN = /^(?:NODE_|OTEL_)/;

/** Seconds that the log may take after a drain: see docs/operations.md, Stopping. */
const LOG_SECONDS = 2;

describe.each(renderings().map((rendering) => [rendering.name, rendering] as const))('the variant %s', (name, it_) => {
  const { deployment, container, pod, environment, services } = it_;
  const podLabels: Labels | undefined = deployment.template.metadata.labels;
  const ports = new Map(container.ports.map((port) => [port.name, port.containerPort]));

  it('is valid for Kubernetes, without unknown fields, and with a value in every field', () => {
    expect(it_.manifests.length).toBeGreaterThan(2);
    expect(it_.manifests.flatMap(complaintsAbout)).toEqual([]);
    expect(it_.manifests.flatMap((manifest) => nullsIn(manifest, manifest.kind))).toEqual([]);
  });

  it('sets only variables that weir, Node or OpenTelemetry know, of which each has an effect', () => {
    const names = container.env.map((variable) => variable.name).filter((variable) => !FOREIGN.test(variable));
    expect(names.length).toBeGreaterThan(10);
    // What Kubernetes fills in, and the contents of the Secrets, which the renderings do not have.
    const filled = { CONFIG_GRPC_XDS_NODE_ID: 'weir-6d4f' };
    const token = `proxy view sha256:${'0'.repeat(64)}`;
    const { warnings } = readSettings(
      { ...environment, ...(names.includes('CONFIG_GRPC_XDS_NODE_ID') && filled) },
      (_path, { name: setting }) => {
        if (setting === 'OPERATOR_TOKENS') return token;
        return setting.endsWith('_URL') ? 'main,redis:26379' : 'sixteen-characters';
      },
    );
    expect(warnings).toEqual([]);
  });

  it('has rule files without an error and a warning, if it takes them from files', async () => {
    using folder = new TemporaryFolder();
    const files = Object.entries(it_.ruleFiles ?? {});
    for (const [file, text] of files) folder.write(file, text);
    expect(files.length > 0).toBe(['memory', 'redis', 'routed', 'tls-workers'].includes(name));
    const { exitCode, stdout } = await runOf(CHECK, [folder.base, '--strict']);
    if (files.length > 0) expect([exitCode, stdout]).toEqual([0, expect.stringContaining('0 warnings')]);
  });

  it('selects its own Pods everywhere, and no Pod of a test', () => {
    const selectors = [
      deployment.selector.matchLabels,
      ...services.map(({ selector }) => selector),
      ...(pod.topologySpreadConstraints ?? []).map(({ labelSelector }) => labelSelector.matchLabels),
      ...it_.all('PodDisruptionBudget').map(({ spec }) => (spec as { selector: Selector }).selector.matchLabels),
      ...it_.all('NetworkPolicy').map(({ spec }) => (spec as { podSelector: Selector }).podSelector.matchLabels),
    ];
    expect(selectors.filter((selector) => !selects(selector, podLabels))).toEqual([]);
    const tests = it_.all('Pod').map(({ metadata }) => metadata.labels);
    expect(selectors.filter((selector) => tests.some((labels) => selects(selector, labels)))).toEqual([]);
  });

  it('exposes the ports that weir listens on', () => {
    expect(Object.fromEntries(ports)).toEqual({
      grpc: Number(environment['GRPC_PORT']),
      http: Number(environment['PORT']),
      debug: Number(environment['DEBUG_PORT']),
      ...(environment['USE_PULLMETRICS'] === 'true' && { metrics: Number(environment['PULLMETRICS_ADDR']!.slice(1)) }),
    });
    expect(new Set(ports.values()).size).toBe(ports.size);
    const inServices = services.flatMap((service) => service.ports);
    expect(inServices.map((port) => port.port)).toEqual(inServices.map(({ targetPort }) => ports.get(targetPort)));
    const debugged = services.filter((service) => service.ports.some(({ targetPort }) => targetPort === 'debug'));
    expect(debugged.map((service) => service.ports.length)).toEqual(name === 'everything' ? [1, 1] : []);
  });

  it('probes /livez and /readyz on a listener that the kubelet reaches', () => {
    const { startupProbe, livenessProbe, readinessProbe } = container;
    const probed = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet);
    expect(probed.map(({ path }) => path)).toEqual(['/livez', '/livez', '/readyz']);
    const reached = environment['DEBUG_HOST'] === '127.0.0.1' ? ['http'] : ['http', 'debug'];
    expect(probed.filter(({ port }) => !reached.includes(port))).toEqual([]);
  });

  it('gives a stop the time that it may take', () => {
    const delay = Number(parseNanoseconds(environment['SHUTDOWN_DELAY']!)) / 1e9;
    const needed = Math.max(STOP_TIME, delay * 1000 + LEAST_DRAIN) / 1000 + LOG_SECONDS;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
    // Else the fixed part in the template is no longer the drain.
    if (name !== 'everything') expect(pod.terminationGracePeriodSeconds).toBeLessThanOrEqual(needed + 5);
  });

  it('runs without privileges', () => {
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect([pod.automountServiceAccountToken, pod.enableServiceLinks]).toEqual([false, false]);
  });

  it('mounts every file that a variable names, and no volume in vain', () => {
    const volumes = new Map((pod.volumes ?? []).map((volume) => [volume.name, volume]));
    const mounts = container.volumeMounts ?? [];
    expect([...volumes.keys()].toSorted()).toEqual(mounts.map((mount) => mount.name).toSorted());
    const files = mounts.flatMap(({ name: volume, mountPath }) =>
      (volumes.get(volume)!.projected?.sources ?? []).flatMap(({ secret }) =>
        secret.items.map((item) => `${mountPath}/${item.path}`),
      ),
    );
    const named = Object.values(environment).filter((value) => /^\/etc\/weir\/(?!runtime)/.test(value));
    expect(named.toSorted()).toEqual(files.toSorted());
  });

  it('takes its rules from the mounted ConfigMap, or from a management server', () => {
    const mount = container.volumeMounts?.find((it) => it.name === 'rules');
    const { CONFIG_TYPE: type, RUNTIME_ROOT: root, RUNTIME_APPDIRECTORY: folder } = environment;
    expect([type, mount?.mountPath]).toEqual(
      type === 'FILE' ? ['FILE', `${root}/${folder}`] : ['GRPC_XDS_SOTW', undefined],
    );
  });

  it('uses only Secrets and an account of its own that it creates', () => {
    const own = it_.one('Deployment').metadata.name;
    const accounts = it_.all('ServiceAccount').map(({ metadata }) => metadata.name);
    expect(accounts).toEqual(pod.serviceAccountName === 'default' ? [] : [pod.serviceAccountName]);
    const items = (pod.volumes ?? [])
      .flatMap(({ projected }) => projected?.sources ?? [])
      .flatMap(({ secret }) => (secret.name === own ? secret.items.map(({ key }) => key) : []));
    expect(it_.all('Secret').flatMap(({ data }) => Object.keys(data ?? {}))).toEqual(items);
  });

  it('shares the counters of several Pods', () => {
    const isAutoscaled = it_.all('HorizontalPodAutoscaler').length > 0;
    expect(deployment.replicas === undefined).toBe(isAutoscaled);
    if (isAutoscaled || deployment.replicas !== 1) expect(environment['BACKEND_TYPE']).not.toBe('memory');
  });
});

describe('the variant redis', () => {
  const redis = renderingOf('redis');

  it('scales its own Deployment', () => {
    const { scaleTargetRef } = redis.one('HorizontalPodAutoscaler').spec as { scaleTargetRef: unknown };
    const { apiVersion, kind, metadata } = redis.one('Deployment');
    expect(scaleTargetRef).toEqual({ apiVersion, kind, name: metadata.name });
  });

  it('admits calls and scrapes, and not the debug listener', () => {
    const { ingress } = redis.one('NetworkPolicy').spec as {
      ingress: readonly { ports: readonly { port: string }[] }[];
    };
    expect(ingress.map((rule) => rule.ports.map(({ port }) => port))).toEqual([['grpc'], ['http'], ['metrics']]);
  });

  it('keeps passwords out of its variables', () => {
    const values = Object.entries(redis.environment).filter(([variable]) => /AUTH|TOKEN/.test(variable));
    expect(values.map(([variable]) => variable)).toEqual([
      'KVSTORE_AUTH_FILE',
      'KVSTORE_PERSECOND_AUTH_FILE',
      'OPERATOR_TOKENS_FILE',
    ]);
    expect(redis.all('Secret')).toEqual([]);
  });
});

describe('the variant routed', () => {
  const routed = renderingOf('routed');

  it('has Services for HTTP and metrics, which are left out of the one for all', () => {
    const services = routed.all('Service') as readonly { readonly metadata: Metadata; readonly spec: ServiceSpec }[];
    expect(
      services.map(({ metadata, spec }) => [metadata.name, spec.type, spec.ports.map(({ name }) => name)]),
    ).toEqual([
      ['weir', 'ClusterIP', ['grpc']],
      ['weir-http', 'LoadBalancer', ['http']],
      ['weir-metrics', 'ClusterIP', ['metrics']],
    ]);
    expect(services.map(({ spec }) => spec.loadBalancerSourceRanges)).toEqual([undefined, ['10.0.0.0/8'], undefined]);
    const { selector } = routed.one('ServiceMonitor').spec as { selector: Selector };
    const scraped = services.filter(({ metadata }) => selects(selector.matchLabels, metadata.labels));
    expect(scraped.map(({ metadata }) => metadata.name)).toEqual(['weir-metrics']);
  });

  it('leads calls of the rate limit service from a Gateway and an Ingress to gRPC', () => {
    const service = SHOULD_RATE_LIMIT.split('/')[1];
    const { port } = routed.services[0]!.ports[0]!;
    expect(routed.one('GRPCRoute').spec).toEqual({
      parentRefs: [{ name: 'edge', namespace: 'gateways', sectionName: 'grpc' }],
      hostnames: ['weir.example.com'],
      rules: [{ matches: [{ method: { service } }], backendRefs: [{ name: 'weir', port }] }],
    });
    const backend = { service: { name: 'weir', port: { name: 'grpc' } } };
    expect(routed.one('Ingress').spec).toEqual({
      ingressClassName: 'nginx',
      tls: [{ hosts: ['weir.example.com'], secretName: 'weir-edge' }],
      rules: [{ host: 'weir.example.com', http: { paths: [{ path: `/${service}`, pathType: 'Prefix', backend }] } }],
    });
  });
});

describe('the variant everything', () => {
  const everything = renderingOf('everything');

  it('takes images from the registry of the release, in place of their own', () => {
    const images = [everything.container, ...(everything.one('Pod').spec as PodSpec).containers].map(
      ({ image }) => image,
    );
    expect(new Set(images)).toEqual(new Set([`mirror.example:5000/weir@sha256:${'0'.repeat(64)}`]));
  });

  it('has variables from other objects, containers that run first, and objects of its own', () => {
    const { container, pod } = everything;
    expect(container.envFrom).toEqual([
      { configMapRef: { name: 'variables' } },
      { prefix: 'OTEL_', secretRef: { name: 'collector', optional: true } },
    ]);
    expect(pod.initContainers?.map(({ name }) => name)).toEqual(['wait']);
    const objects = everything.all('ConfigMap').map(({ metadata }) => metadata.name);
    expect(objects).toEqual(expect.arrayContaining(['weir-limits-object', 'text-of-weir']));
  });

  it('keeps a share of its Pods, sends calls to Pods of the same node, and shows the debug listener to its clients', () => {
    expect(everything.one('PodDisruptionBudget').spec).toMatchObject({ minAvailable: '25%' });
    expect(everything.one('PodDisruptionBudget').spec).not.toHaveProperty('maxUnavailable');
    const policies = everything.services.map(({ ports, internalTrafficPolicy }) => [
      ports[0]!.name,
      internalTrafficPolicy,
    ]);
    expect(policies).toEqual([
      ['grpc', 'Local'],
      ['debug', 'Cluster'],
      ['grpc', undefined],
      ['debug', undefined],
    ]);
    const { ingress } = everything.one('NetworkPolicy').spec as { ingress: readonly object[] };
    expect(ingress.at(-1)).toEqual({
      ports: [{ port: 'debug', protocol: 'TCP' }],
      from: [
        { podSelector: { matchLabels: { operates: 'true' } } },
        { podSelector: { matchLabels: everything.services[0]!.selector } },
      ],
    });
  });

  it('lets its Pods find each other, also those that are not ready, and serves and probes the debug listener over TLS', () => {
    const { environment, container, services } = everything;
    expect(environment['OPERATOR_PEERS']).toBe('dns:https://weir-limits-peers:9070');
    const { ports, ...peers } = services.at(-1)!;
    expect(peers).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true, selector: services[0]!.selector });
    expect(ports).toMatchObject([{ name: 'debug', port: 9070, appProtocol: 'https' }]);
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    expect(probes.map(({ httpGet }) => httpGet)).toMatchObject(Array(3).fill({ port: 'debug', scheme: 'HTTPS' }));
    expect(renderingOf('redis').container.readinessProbe.httpGet).not.toHaveProperty('scheme');
  });
});

it('annotations and lifecycle hooks are where the values say, and nowhere else', () => {
  const found = ['everything', 'routed'].flatMap((name) =>
    renderingOf(name).manifests.flatMap(({ kind, metadata, spec }) => {
      const { template } = Object(spec) as { readonly template?: { readonly metadata: Pick<Metadata, 'annotations'> } };
      const all = { ...metadata.annotations, ...template?.metadata.annotations };
      return Object.keys(all).map((annotation) => `${kind} ${metadata.name}: ${annotation}`);
    }),
  );
  expect(found.toSorted()).toEqual([
    'ConfigMap weir-limits-dashboard: grafana_folder',
    'Deployment weir-limits: example.com/deployment',
    'Deployment weir-limits: example.com/pod',
    'Deployment weir-limits: kubectl.kubernetes.io/default-container',
    'Deployment weir: kubectl.kubernetes.io/default-container',
    'GRPCRoute weir: example.com/route',
    'Ingress weir: nginx.ingress.kubernetes.io/backend-protocol',
    'Pod weir-limits-test: helm.sh/hook',
    'Pod weir-limits-test: helm.sh/hook-delete-policy',
    'Pod weir-test: helm.sh/hook',
    'Pod weir-test: helm.sh/hook-delete-policy',
    'Service weir-http: example.com/json',
    'Service weir-limits-headless: example.com/balanced',
    'Service weir-limits: example.com/internal',
    'ServiceAccount limits: example.com/account',
  ]);
  expect(renderingOf('everything').container.lifecycle).toEqual({ preStop: { sleep: { seconds: 1 } } });
  expect(renderingOf('routed').container.lifecycle).toBeUndefined();
});

it('another value of a secret changes the Secret alone, so that no digest of it is anywhere and no Pod restarts', () => {
  using folder = new TemporaryFolder();
  const files = ['one', 'two'].map((word) =>
    folder.write(`${word}.yaml`, `secrets: { OPERATOR_TOKEN: { value: a-token-of-${word}-operators } }`),
  );
  const [one, two] = render(files).map(({ manifests }) => manifests!);
  expect(Object.keys(one!).filter((path) => one![path] !== two![path])).toEqual(['weir/templates/secret.yaml']);
});

describe.each(['redis', 'everything'])('the monitoring of the variant %s', (name) => {
  const rendering = renderingOf(name);
  const services = rendering.all('Service') as readonly { readonly metadata: Metadata; readonly spec: ServiceSpec }[];

  it('scrapes one Service, where and as weir serves metrics', () => {
    const monitor = rendering.one('ServiceMonitor').spec as {
      readonly selector: Selector;
      readonly endpoints: readonly { readonly port: string; readonly path: string; readonly relabelings: unknown }[];
    };
    const selected = services.filter(({ metadata }) => selects(monitor.selector.matchLabels, metadata.labels));
    expect(selected.map(({ metadata }) => metadata.name)).toEqual([rendering.one('Deployment').metadata.name]);
    const [endpoint] = monitor.endpoints;
    expect(selected[0]!.spec.ports.map((port) => port.name)).toContain(endpoint!.port);
    expect(endpoint!.path).toBe(rendering.environment['PULLMETRICS_PATH']);
    expect(endpoint!.relabelings).toEqual([{ targetLabel: 'job', replacement: 'weir' }]);
  });

  it('has a Service without an address for clients that balance their calls', () => {
    const headless = services.filter(({ spec }) => spec.clusterIP === 'None' && spec.publishNotReadyAddresses !== true);
    expect(headless.map(({ spec }) => spec.ports.map((port) => port.name))).toEqual([['grpc']]);
  });
});

it('the NetworkPolicy admits to each port its own peers, and the Pod of helm test', () => {
  const rendering = renderingOf('everything');
  const { ingress } = rendering.one('NetworkPolicy').spec as {
    ingress: readonly { from?: readonly { podSelector?: Selector }[] }[];
  };
  const selectors = ingress.slice(0, 2).map(({ from }) => from!.map(({ podSelector }) => podSelector!.matchLabels));
  expect(selectors.map(([own]) => own)).toEqual([{ limited: 'true' }, { limited: 'over-http' }]);
  const { labels } = rendering.one('Pod').metadata;
  for (const [own, ofTest] of selectors) expect([own, ofTest].map((it) => selects(it!, labels))).toEqual([false, true]);
});

describe('the protocol of the gRPC port', () => {
  it.each([
    ['memory', 'grpc'],
    ['tls-workers', 'tls'],
    ['everything', 'kubernetes.io/h2c'],
  ])('of the variant %s is %s', (name, protocol) => {
    const ports = renderingOf(name).services.flatMap((service) => service.ports);
    const used = ports.filter((port) => port.name === 'grpc').map((port) => port.appProtocol);
    expect(new Set(used)).toEqual(new Set([protocol]));
  });
});

describe('the schemas of Kubernetes', () => {
  it('are used for every kind that is rendered, and for no others', () => {
    const kinds = renderings().flatMap(({ manifests }) => manifests.map((each) => `${each.apiVersion}/${each.kind}`));
    expect(Object.keys(schemas.kinds).toSorted()).toEqual([...new Set(kinds)].toSorted());
  });
});

describe('the chart', () => {
  it('rejects each file of rejected/ with the message that it begins with', () => {
    const files = valuesIn('test/deploy/rejected');
    const expected = files.map((file) => /^# (.*)$/m.exec(readFileSync(join(ROOT, file), 'utf8'))![1]!);
    const found = render(files).map(({ complaint }, index) => {
      const isExpected = complaint?.includes(expected[index]!) === true;
      return isExpected ? undefined : `${files[index]}: ${complaint ?? 'rendered'}`;
    });
    expect(found.filter((each) => each !== undefined)).toEqual([]);
    expect(files.length).toBeGreaterThan(20);
  });

  it('rejects a misspelling of every value', () => {
    // These are passed to Kubernetes, which knows what is in them.
    const open =
      /^(?:global|podSecurityContext|securityContext|autoscaling\.behavior\.scale\w+|metrics\.dashboard\.labels|resources\.\w+)\./;
    const values = parse(readFileSync(join(ROOT, 'deploy/helm/weir/values.yaml'), 'utf8')) as Values;
    const paths = pathsOf(values).filter((path) => !open.test(path.join('.')));
    using folder = new TemporaryFolder();
    const results = render(paths.map((path, index) => folder.write(`${index}.yaml`, stringify(misspelled(path)))));
    const accepted = paths.filter((_path, index) => results[index]!.complaint === undefined);
    expect(accepted.map((path) => path.join('.'))).toEqual([]);
    expect(paths.length).toBeGreaterThan(100);
  });
});

type Values = Readonly<Record<string, unknown>>;

function isMap(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The path of every value of values.yaml. */
function pathsOf(values: Values, prefix: readonly string[] = []): readonly (readonly string[])[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const path = [...prefix, key];
    return isMap(value) ? [path, ...pathsOf(value, path)] : [path];
  });
}

/** Values with one entry, whose last key is misspelled. */
function misspelled(path: readonly string[]): unknown {
  const [last = '', ...parents] = path.toReversed();
  return parents.reduce<unknown>((value, key) => ({ [key]: value }), { [`${last}s`]: {} });
}
