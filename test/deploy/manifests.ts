import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

export const ROOT = join(__dirname, '../..');

/** An object of Kubernetes; what is in `spec` depends on its kind. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly spec?: unknown;
  readonly data?: Readonly<Record<string, string>>;
}

export interface Metadata {
  readonly name: string;
  readonly labels?: Labels;
  readonly annotations?: Labels;
}

export type Labels = Readonly<Record<string, string>>;

export interface Selector {
  readonly matchLabels: Labels;
}

export interface Port {
  readonly name: string;
}

export interface ContainerPort extends Port {
  readonly containerPort: number;
}

export interface ServicePort extends Port {
  readonly port: number;
  readonly targetPort: string;
  readonly appProtocol: string;
}

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

export interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: unknown;
}

export interface Container {
  readonly name: string;
  readonly command?: readonly string[];
  readonly securityContext?: unknown;
  readonly ports: readonly ContainerPort[];
  readonly env: readonly Variable[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

interface SecretItem {
  readonly key: string;
  readonly path: string;
}

export interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly projected?: {
    readonly sources: readonly { readonly secret: { readonly name: string; readonly items: readonly SecretItem[] } }[];
  };
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: unknown;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly serviceAccountName: string;
  readonly containers: readonly [Container, ...Container[]];
  readonly volumes?: readonly Volume[];
  readonly topologySpreadConstraints?: readonly { readonly labelSelector: Selector }[];
}

export interface DeploymentSpec {
  readonly replicas?: number;
  readonly selector: Selector;
  readonly template: { readonly metadata: Pick<Metadata, 'labels'>; readonly spec: PodSpec };
}

export interface ServiceSpec {
  readonly clusterIP?: string;
  readonly selector: Labels;
  readonly ports: readonly ServicePort[];
}

/** What a variant of values is rendered to. */
export class Rendering {
  readonly manifests: readonly Manifest[];

  constructor(
    readonly name: string,
    text: string,
  ) {
    // As Kubernetes reads YAML.
    this.manifests = parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS() as Manifest);
  }

  all(kind: string): readonly Manifest[] {
    return this.manifests.filter((manifest) => manifest.kind === kind);
  }

  /** The only object of the kind. */
  one(kind: string): Manifest {
    const [manifest, ...more] = this.all(kind);
    if (manifest === undefined || more.length > 0)
      throw new Error(`${this.name} has ${more.length} more or no ${kind}`);
    return manifest;
  }

  get deployment(): DeploymentSpec {
    return this.one('Deployment').spec as DeploymentSpec;
  }

  get pod(): PodSpec {
    return this.deployment.template.spec;
  }

  /** The container of weir. */
  get container(): Container {
    return this.pod.containers[0];
  }

  /** The variables with a value of their own. */
  get environment(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.container.env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
    );
  }

  get services(): readonly ServiceSpec[] {
    return this.all('Service').map(({ spec }) => spec as ServiceSpec);
  }

  /** The text of the rule files by name; undefined if the ConfigMap is not in the rendering. */
  get ruleFiles(): Readonly<Record<string, string>> | undefined {
    const volume = this.pod.volumes?.find(({ name }) => name === 'rules');
    return this.all('ConfigMap').find(({ metadata }) => metadata.name === volume?.configMap?.name)?.data;
  }
}

function renderingsIn(folder: string): readonly Rendering[] {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => new Rendering(name.replace('.yaml', ''), readFileSync(join(ROOT, folder, name), 'utf8')));
}

/** All committed renderings: those for users, and those with the other branches of the templates. */
export function renderings(): readonly Rendering[] {
  return [...renderingsIn('deploy/kubernetes'), ...renderingsIn('test/deploy/variants/rendered')];
}

export function renderingOf(name: string): Rendering {
  const found = renderings().find((rendering) => rendering.name === name);
  if (found === undefined) throw new Error(`there is no rendering ${name}`);
  return found;
}

/** The value of a YAML file. */
export function readYaml(path: string): unknown {
  return parse(readFileSync(join(ROOT, path), 'utf8'));
}

/** Whether a selector selects an object with these labels. */
export function selects(selector: Labels, labels: Labels | undefined): boolean {
  const entries = Object.entries(selector);
  return entries.length > 0 && entries.every(([key, value]) => labels?.[key] === value);
}
