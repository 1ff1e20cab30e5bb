import { FlagError, type FlagSpec, parseFlags } from '../flags';

/** The flags of weir-check; the first two are those of the Go service's checker. */
export const CHECK_FLAGS = {
  config_dir: { kind: 'string', default: '', placeholder: 'DIR', help: 'the folder with the rule files' },
  merge_domain_configs: { kind: 'boolean', help: 'let several files describe one domain (MERGE_DOMAIN_CONFIG)' },
  ignore_dot_files: { kind: 'boolean', help: 'leave out names that begin with a dot (RUNTIME_IGNOREDOTFILES)' },
  strict: { kind: 'boolean', help: 'warnings fail the check too' },
  format: { kind: 'string', default: 'text', placeholder: 'text|json', help: 'how to print what was found' },
  explain: { kind: 'boolean', help: 'show which rule a descriptor meets: -explain DOMAIN KEY=VALUE,KEY=VALUE' },
} as const satisfies FlagSpec;

export interface CheckRequest {
  readonly dir: string;
  readonly mergeDomainConfigs: boolean;
  readonly ignoreDotFiles: boolean;
  readonly strict: boolean;
  readonly format: 'text' | 'json';
  readonly explain: { readonly domain: string; readonly descriptor: string } | undefined;
}

/**
 * What a command line asks for; `help` when it asks for that.
 * @throws {FlagError} when it cannot be understood
 */
export function readCheckRequest(argv: readonly string[]): CheckRequest | 'help' {
  const { help, values, rest } = parseFlags(argv, CHECK_FLAGS);
  if (help) return 'help';
  const { config_dir: dir, format } = values;
  if (dir === '') throw new FlagError('-config_dir is missing: name the folder with the rule files');
  if (format !== 'text' && format !== 'json') {
    throw new FlagError(`invalid value "${format}" for flag -format: text or json expected`);
  }
  return {
    dir,
    format,
    mergeDomainConfigs: values.merge_domain_configs,
    ignoreDotFiles: values.ignore_dot_files,
    strict: values.strict,
    explain: values.explain ? readExplain(rest) : refuseRest(rest),
  };
}

function readExplain([domain, descriptor, surplus]: readonly string[]): CheckRequest['explain'] {
  if (domain === undefined || descriptor === undefined) {
    throw new FlagError('-explain needs a domain and a descriptor: -explain DOMAIN KEY=VALUE,KEY=VALUE');
  }
  refuseRest(surplus === undefined ? [] : [surplus]);
  return { domain, descriptor };
}

function refuseRest([surplus]: readonly string[]): undefined {
  if (surplus !== undefined) throw new FlagError(`unexpected argument: ${surplus}`);
}
