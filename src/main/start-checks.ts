import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import { openFilesLimit } from '../net/open-files';
import { MAX_TLS_FILE_BYTES, checkedContext, readSmallFile } from '../net/reloaded-files';
import type { Inspect } from '../settings/read-settings';
import { INSTANCES, type InstanceFields, type SettingsView, TLS_FILES, instanceSettings } from '../settings/settings';
import { splitList } from '../settings/values/lists';
import type { readMappingFile } from '../sinks/statistics/mapping-file';
import { usableMemory } from '../sources/usable-memory';
import { messageOf } from '../text/thrown';

/** What a process may use. */
export interface Machine {
  /** File descriptors. */
  readonly files: number;
  /** Bytes. */
  readonly memory: number;
}

/**
 * Finds what the settings alone do not show, so that a start reports all of its problems at once: files that are
 * missing or invalid, and more connections or memory than the process may use.
 */
export function startChecks(machine: Machine = { files: openFilesLimit(), memory: usableMemory() }): Inspect {
  return (view) => ({
    problems: [
      ...Object.values(TLS_FILES).flatMap((files) => tlsProblems(view, files)),
      ...mapperProblems(view),
      ...FOLDERS_OF.flatMap((field) => folderProblems(view, field)),
      ...Object.values(INSTANCES).flatMap((instance) => connectionProblems(view, instance, machine)),
    ],
    warnings: memoryWarnings(view, machine),
  });
}

type TlsFields = (typeof TLS_FILES)[keyof typeof TLS_FILES];

function tlsProblems(view: SettingsView, fields: TlsFields): readonly string[] {
  const problems: string[] = [];
  function read(field: TlsFields['ca' | 'cert' | 'key']) {
    const path = field && view.settings[field];
    if (field === undefined || path === undefined || !view.isUsed(field)) return undefined;
    const name = `${view.nameOf(field)}=${path}`;
    try {
      return { name, text: new TextDecoder().decode(readSmallFile(path, MAX_TLS_FILE_BYTES)) };
    } catch (error) {
      problems.push(`cannot use ${name}: ${messageOf(error)}.`);
      return undefined;
    }
  }
  const contents = { ca: read(fields.ca), cert: read(fields.cert), key: read(fields.key) };
  if (problems.length > 0) return problems;
  try {
    checkedContext(contents);
    return [];
  } catch (error) {
    return [`cannot use the TLS files: ${messageOf(error)}.`];
  }
}

/** Bytes of a mapping file: some ten thousand mappings. */
export const MAX_MAPPING_BYTES = 4 * 1024 * 1024;

function mapperProblems({ settings, nameOf, isUsed }: SettingsView): readonly string[] {
  const path = settings.pullmetricsMapperYaml;
  if (path === undefined || !isUsed('pullmetricsMapperYaml')) return [];
  try {
    // Loads the YAML library, which nothing else needs as a rule.
    const mapping = require('../sinks/statistics/mapping-file') as { readonly readMappingFile: typeof readMappingFile };
    mapping.readMappingFile(new TextDecoder().decode(readSmallFile(path, MAX_MAPPING_BYTES)));
    return [];
  } catch (error) {
    return [`${nameOf('pullmetricsMapperYaml')}=${path} cannot be used: ${messageOf(error)}.`];
  }
}

/** Settings that name something to be made in a folder. */
const FOLDERS_OF = ['grpcUds', 'decisionLogOutput'] as const;

function folderProblems(view: SettingsView, field: (typeof FOLDERS_OF)[number]): readonly string[] {
  const path = view.settings[field];
  if (path === undefined || path === 'stdout' || path === 'stderr' || !view.isUsed(field)) return [];
  try {
    accessSync(dirname(path), constants.W_OK);
    return [];
  } catch (error) {
    return [`cannot use ${view.nameOf(field)}=${path}: its folder cannot be written to: ${messageOf(error)}.`];
  }
}

/** File descriptors that everything but the connections to a store needs. */
const OTHER_FILES = 64;

function connectionProblems(
  { settings, nameOf, hasEffect }: SettingsView,
  instance: InstanceFields,
  { files }: Machine,
): readonly string[] {
  if (!hasEffect(instance.poolSize)) return [];
  const { poolSize: size, type, url = '' } = instanceSettings(settings, instance);
  const nodes = type === 'cluster' ? splitList(url).length : 1;
  const most = Math.floor((files - OTHER_FILES) / nodes);
  if (size <= most) return [];
  const each = nodes === 1 ? '' : ` for each of ${nodes} nodes`;
  return [
    `${nameOf(instance.poolSize)} is ${size}${each}, more connections than the ${files} file descriptors of this ` +
      `process allow; set it to at most ${Math.max(1, most)}, or raise the limit (ulimit -n, LimitNOFILE).`,
  ];
}

/** Bytes per unit of a setting that is a size. */
const SIZES = {
  memoryMaxBytes: 1,
  localCacheSizeInBytes: 1,
  xdsClientMaxMsgSizeInBytes: 1,
  statsMaxRuntimeKeys: 500,
} as const;

function memoryWarnings({ settings, nameOf, isUsed }: SettingsView, { memory }: Machine): readonly string[] {
  return Object.entries(SIZES).flatMap(([name, bytes]) => {
    const field = name as keyof typeof SIZES;
    const value = settings[field];
    if (value === undefined || !isUsed(field) || value * bytes <= memory) return [];
    const size = Math.floor(memory / 1024 ** 2);
    return [
      `${nameOf(field)} is ${value}: that may take more memory than the ${size} MiB that this process can use, ` +
        'and ends it when it does.',
    ];
  });
}
