import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { TemporaryFolder } from '../support/data/temporary-folder';

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
export type Selector = { readonly matchLabels: Labels };
type Probe = { readonly httpGet: { readonly path: string; readonly port: string; readonly scheme?: string } };
type SecretSource = {
  readonly name: string;
  readonly items: readonly { readonly key: string; readonly path: string }[];
};

export interface Container {
  readonly image: string;
  readonly command?: readonly string[];
  readonly securityContext?: unknown;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
  readonly envFrom?: readonly object[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly lifecycle?: unknown;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

export interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly projected?: { readonly sources: readonly { readonly secret: SecretSource }[] };
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: unknown;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly serviceAccountName: string;
  readonly initContainers?: readonly { readonly name: string }[];
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
  readonly type: string;
  readonly clusterIP?: string;
  readonly publishNotReadyAddresses?: boolean;
  readonly loadBalancerSourceRanges?: readonly string[];
  readonly internalTrafficPolicy?: string;
  readonly selector: Labels;
  readonly ports: readonly {
    readonly name: string;
    readonly port: number;
    readonly targetPort: string;
    readonly appProtocol: string;
  }[];
}

/** What a variant of values is rendered to. */
export class Rendering {
  readonly manifests: readonly Manifest[];

  constructor(
    readonly name: string,
    text: string,
  ) {
    // As Kubernetes reads YAML.
    const documents = parseAllDocuments(text, { version: '1.1' }).map((document) => document.toJS() as Manifest | null);
    this.manifests = documents.filter((document) => document !== null);
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

const FOLDERS = ['deploy/helm/weir/ci', 'test/deploy/variants'] as const;

/** What Helm makes of these files of values: manifests by template, or a complaint. */
export function render(files: readonly string[]): readonly RenderResult[] {
  using out = new TemporaryFolder();
  const args = files.flatMap((file) => ['--values', resolve(ROOT, file)]);
  const script = join(ROOT, 'scripts/chart.mjs');
  const output = execFileSync(process.execPath, [script, '--out', out.base, ...args], { maxBuffer: 2 ** 28 });
  return JSON.parse(String(output)) as readonly RenderResult[];
}

export interface RenderResult {
  readonly manifests?: Readonly<Record<string, string>>;
  readonly complaint?: string;
}

/** The files of values in a folder. */
export function valuesIn(folder: string): readonly string[] {
  const names = readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.yaml'));
  return names.map((name) => `${folder}/${name}`);
}

let rendered: readonly Rendering[] | undefined;

/** The renderings of the values for users, and of those with the other branches of the templates. */
export function renderings(): readonly Rendering[] {
  if (rendered !== undefined) return rendered;
  const files = FOLDERS.flatMap(valuesIn);
  rendered = render(files).map(({ manifests, complaint }, index) => {
    const name = files[index]!.replace(/^.*\/|-values\.yaml$/g, '');
    if (manifests === undefined) throw new Error(`${name}: ${complaint}`);
    const templates = Object.entries(manifests).filter(([path, text]) => path.endsWith('.yaml') && text.trim() !== '');
    return new Rendering(name, templates.map(([, text]) => text).join('\n---\n'));
  });
  return rendered;
}

export function renderingOf(name: string): Rendering {
  const found = renderings().find((rendering) => rendering.name === name);
  if (found === undefined) throw new Error(`there is no rendering ${name}`);
  return found;
}

/** Whether a selector selects an object with these labels. */
export function selects(selector: Labels, labels: Labels | undefined): boolean {
  const entries = Object.entries(selector);
  return entries.length > 0 && entries.every(([key, value]) => labels?.[key] === value);
}
