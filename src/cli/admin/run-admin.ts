import { messageOf } from '../../text/thrown';
import { parseDescriptor } from '../client/parse-descriptor';
import { FlagError, type FlagValues, parseFlags } from '../flags';
import { type ApiRequest, callApi } from '../operators/call-api';
import { formatExplanation } from '../operators/format-explanation';
import { tokenFrom } from '../operators/operator-token';
import { VERSION } from '../version';
import { visibleJson } from '../visible';
import { ADMIN_FLAGS, ADMIN_HELP } from './admin-flags';
import { formatCounter, formatHealth, formatOffenders, formatRules } from './format-answers';

const TIMEOUT_MS = 10_000;

type Values = FlagValues<typeof ADMIN_FLAGS>;

/** A command: what it calls, and how the answer is printed. */
interface Command {
  readonly request: (values: Values) => ApiRequest;
  readonly format: (answer: never) => string;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  rules: {
    request: ({ domain }) => ({ path: domain === '' ? 'rules' : rulesOf(domain) }),
    format: formatRules,
  },
  explain: {
    request: ({ domain, descriptors, hits_addend: hitsAddend }) => {
      requireRequest(domain, descriptors);
      const parsed = descriptors.map((text) => ({ entries: parseDescriptor(text).entries }));
      return { method: 'POST', path: 'explanations', body: { domain, descriptors: parsed, hitsAddend } };
    },
    format: formatExplanation,
  },
  'counter get': { request: (values) => ({ path: 'counters', query: counterOf(values) }), format: formatCounter },
  'counter set': {
    request: (values) => {
      if (!/^\d{1,16}$/.test(values.count)) throw new FlagError('flag -count requires a whole number');
      return { method: 'PUT', path: 'counters', body: { ...counterOf(values), count: Number(values.count) } };
    },
    format: formatCounter,
  },
  'counter clear': {
    request: (values) => ({ method: 'DELETE', path: 'counters', query: counterOf(values) }),
    format: formatCounter,
  },
  top: {
    request: ({ domain, top }) => ({
      path: 'offenders',
      query: { top: String(top), ...(domain !== '' && { domain }) },
    }),
    format: formatOffenders,
  },
  health: { request: () => ({ path: 'health' }), format: formatHealth },
};

export interface AdminRun {
  readonly exitCode: 0 | 1;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The program weir-admin: calls the operators' API of a running service and prints the answer.
 *
 * @param argv the command line without interpreter and program
 */
export async function runAdmin(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<AdminRun> {
  try {
    const { information, values, rest } = parseFlags(argv, ADMIN_FLAGS);
    if (information !== undefined) {
      return { exitCode: 0, stdout: information === 'help' ? ADMIN_HELP : `weir-admin ${VERSION}\n`, stderr: '' };
    }
    const name = rest.join(' ');
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command === undefined) {
      const problem = name === '' ? 'a command is required' : `unexpected argument "${name}"`;
      throw new FlagError(`${problem}\nThe commands are ${Object.keys(COMMANDS).join(', ')}`);
    }
    const token = tokenFrom(values.token_file, environment);
    const target = { address: values.address, token, timeoutMs: TIMEOUT_MS };
    const answer = await callApi(target, command.request(values));
    const text = values.json ? visibleJson(answer) : command.format(answer as never);
    const isUnhealthy = name === 'health' && !(answer as { readonly healthy: boolean }).healthy;
    return { exitCode: isUnhealthy ? 1 : 0, stdout: `${text}\n`, stderr: '' };
  } catch (error) {
    const hint = error instanceof FlagError ? '\nRun weir-admin -h for a list of the commands and flags.' : '';
    return { exitCode: 1, stdout: '', stderr: `weir-admin: ${messageOf(error)}${hint}\n` };
  }
}

/** With a format, so that the end of a domain such as `shop.json` is not read as one. */
function rulesOf(domain: string): string {
  return `rules/${encodeURIComponent(domain)}.json`;
}

function counterOf({ domain, descriptors }: Values): { readonly domain: string; readonly descriptor: string } {
  requireRequest(domain, descriptors);
  const [text = '', further] = descriptors;
  if (further !== undefined) throw new FlagError('a counter is that of one descriptor: give -descriptors once');
  parseDescriptor(text);
  return { domain, descriptor: text };
}

function requireRequest(domain: string, descriptors: readonly string[]): void {
  if (domain === '') throw new FlagError('flag -domain is required');
  if (descriptors.length === 0) throw new FlagError('flag -descriptors is required');
}
