import { FlagError, type FlagSpec, type Information, parseFlags } from '../flags';

/** The flags of weir-check. The first two have the names of the Go service's config check. */
export const CHECK_FLAGS = {
  config_dir: { kind: 'string', default: '', placeholder: 'PATH', help: 'the folder or file, like the argument PATH' },
  merge_domain_configs: { kind: 'boolean', help: 'allow several files for one domain, like MERGE_DOMAIN_CONFIG' },
  ignore_dot_files: { kind: 'boolean', help: 'skip names that begin with a dot, like RUNTIME_IGNOREDOTFILES' },
  strict: { kind: 'boolean', help: 'exit with code 1 for warnings too' },
  format: { kind: 'string', default: 'text', placeholder: 'text|json', help: 'format of the output' },
  explain: { kind: 'boolean', help: 'show which rule matches a descriptor: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE' },
} as const satisfies FlagSpec;

export interface CheckRequest {
  /** A folder of rule files, or one rule file. */
  readonly path: string;
  readonly mergeDomainConfigs: boolean;
  readonly ignoreDotFiles: boolean;
  readonly strict: boolean;
  readonly format: 'text' | 'json';
  readonly explain: { readonly domain: string; readonly descriptor: string } | undefined;
}

/**
 * Parses a command line.
 *
 * @returns what to print if the command line requests no check
 * @throws {FlagError} for an invalid command line
 */
export function parseCheckRequest(argv: readonly string[]): CheckRequest | Information {
  const { information, values, rest } = parseFlags(argv, CHECK_FLAGS);
  if (information !== undefined) return information;
  const { format } = values;
  const [path, ...others] = values.config_dir === '' ? rest : [values.config_dir, ...rest];
  if (path === undefined) throw new FlagError('give the folder with the rule files, or one rule file');
  if (format !== 'text' && format !== 'json') {
    throw new FlagError(`invalid value "${format}" for flag -format: expected text or json`);
  }
  return {
    path,
    format,
    mergeDomainConfigs: values.merge_domain_configs,
    ignoreDotFiles: values.ignore_dot_files,
    strict: values.strict,
    explain: values.explain ? parseExplain(others) : rejectRest(others),
  };
}

function parseExplain([domain, descriptor, surplus]: readonly string[]): CheckRequest['explain'] {
  if (domain === undefined || descriptor === undefined) {
    throw new FlagError(
      'flag -explain requires a path, a domain and a descriptor: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE',
    );
  }
  rejectRest(surplus === undefined ? [] : [surplus]);
  return { domain, descriptor };
}

function rejectRest([surplus]: readonly string[]): undefined {
  if (surplus !== undefined) throw new FlagError(`unexpected argument "${surplus}"`);
}
