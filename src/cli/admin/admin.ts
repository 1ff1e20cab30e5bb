import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Offender } from '../../limiter/offender';
import type { Explanation } from '../../explain/explanation';
import { formatExplanation } from '../../explain/text';
import type { CounterState, ListedSetting } from '../../operators/answers';
import type { Fleet, ListedHealth } from '../../operators/live-answers';
import { operatorTokens } from '../../settings/values/lists';
import { type ApiRequest, type ApiTarget, callApi, tokenFrom, withPort } from '../api';
import { parseRequest } from '../request';
import { FlagError, type FlagValues, booleanFlag, listFlag, numberFlag, textFlag } from '../flags';
import { Exit, JSON_FLAG, type Program } from '../program';
import { formatFleetHealth, formatFleetRules, formatFleetTop } from './format-fleet';
import { formatCounter, formatHealth, formatOffenders, formatRules } from './format-answers';

const TIMEOUT_MS = 10_000;

/** The debug listener of the service with the same environment. */
const OWN_ADDRESS = 'localhost:$DEBUG_PORT';

/** The flags of weir-admin, those of requests as in weir-client. */
const ADMIN_FLAGS = {
  address: textFlag(
    'host:port',
    'address of the debug listener, with TLS after https://; without DEBUG_PORT, its port is 6070',
    OWN_ADDRESS,
  ),
  ca_file: textFlag('file', 'PEM file with an authority that has issued the certificate of https://'),
  token_file: textFlag(
    'file',
    'file with the operator token; otherwise OPERATOR_TOKEN or the file of OPERATOR_TOKEN_FILE',
  ),
  domain: textFlag('name', 'domain'),
  descriptors: listFlag('name=value,…', 'one descriptor: its entries, separated by commas'),
  hits_addend: numberFlag(0xffff_ffff, 'hits to explain; 0 means 1'),
  count: textFlag('n', 'count to set'),
  window: textFlag('name', 'the limit of a rule with several, by its window: second, 5minute'),
  reason: textFlag('text', 'why a counter is changed: for the log and the list of changes'),
  name: textFlag('name', 'of the holder of a new token'),
  role: textFlag('role', 'of a new token: view, operate or peer'),
  top: numberFlag(1000, 'how many callers to list; with -fleet at most 50', 20),
  fleet: booleanFlag('of all instances, those of OPERATOR_PEERS; with rules, top and health'),
  json: JSON_FLAG,
};

type Values = FlagValues<typeof ADMIN_FLAGS>;

/** A command: what it calls, and how the answer is printed; `call` makes further calls that this needs. */
interface Command {
  readonly request: (values: Values) => ApiRequest;
  readonly format: (answer: never, call: Call) => string | Promise<string>;
  /** Further requests whose answers are printed, too: the values of each. */
  readonly further?: (answer: never, values: Values) => readonly Values[];
  /** Whether the exit code is 1. */
  readonly hasFailed?: (answer: never) => boolean;
  /** How the answers of all instances are printed; undefined: there is no such command for `-fleet`. */
  readonly formatFleet?: (fleet: Fleet, values: Values) => string;
}

type Call = (request: ApiRequest) => Promise<unknown>;

const COMMANDS: Readonly<Record<string, Command>> = {
  rules: {
    request: ({ domain }) => ({ path: domain === '' ? 'rules' : rulesOf(domain) }),
    format: formatRules,
    formatFleet: formatFleetRules,
  },
  explain: {
    request: ({ domain, descriptors, hits_addend: hitsAddend }) => {
      const parsed = parseRequest(domain, descriptors).map((entries) => ({ entries }));
      return { method: 'POST', path: 'explanations', body: { domain, descriptors: parsed, hitsAddend } };
    },
    format: formatExplanation,
    hasFailed: ({ answer }: Explanation) => answer === null,
  },
  'counter get': {
    request: (values) => ({ path: 'counters', query: counterOf(values) }),
    further: ({ windows }: CounterState, values) => {
      return values.window === '' ? windows.slice(1).map((window) => ({ ...values, window })) : [];
    },
    format: formatCounter,
  },
  'counter set': {
    request: (values) => {
      if (!/^\d{1,16}$/.test(values.count)) throw new FlagError('flag -count requires a whole number');
      return { method: 'PUT', path: 'counters', body: { ...changeOf(values), count: Number(values.count) } };
    },
    format: formatCounter,
  },
  'counter clear': {
    request: (values) => ({ method: 'DELETE', path: 'counters', query: changeOf(values) }),
    format: formatCounter,
  },
  top: {
    request: ({ domain, top }) => ({
      path: 'offenders',
      query: { top: String(top), ...(domain !== '' && { domain }) },
    }),
    format: formatTop,
    formatFleet: formatFleetTop,
  },
  health: {
    request: () => ({ path: 'health' }),
    format: formatHealth,
    hasFailed: ({ healthy }: ListedHealth) => !healthy,
    formatFleet: formatFleetHealth,
  },
};

/** The command that calls no service. */
const TOKEN_COMMAND = 'token';

/** The program weir-admin: calls the operators' API of a running service and prints the answer. */
export const ADMIN: Program<typeof ADMIN_FLAGS> = {
  name: 'weir-admin',
  flags: ADMIN_FLAGS,
  commands: [...Object.keys(COMMANDS), TOKEN_COMMAND],
  help: [
    `weir-admin shows and changes what a running service does, with the operators' API.

Usage: weir-admin COMMAND [flags]

  rules [-domain name]                                     the active rules and what they counted
  explain -domain name -descriptors name=value,…           what would be answered, and why; nothing is counted
  counter get -domain name -descriptors name=value,…       the counter of a descriptor, or all of a rule with several limits
  counter set -domain name -descriptors name=value,… -count n
  counter clear -domain name -descriptors name=value,…
  top [-domain name] [-top n]                              the callers limited most
  health                                                   how the service is, and what to do
  rules, top or health -fleet                              the same of all instances, of rules only their versions
  token -name name -role role                              a new token, or that of -token_file, and its line for OPERATOR_TOKENS_FILE
`,
    `Exit codes: 0 done, 1 no answer or an error, also one that the explained call would get, or the service is unhealthy, 2 wrong use.

Example: weir-admin explain -domain shop -descriptors user=ann,path=/buy
`,
  ],
  async run({ values, rest, environment }) {
    const name = rest.join(' ');
    if (name === TOKEN_COMMAND) return newToken(values);
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command === undefined) {
      const problem = name === '' ? 'a command is required' : `unexpected argument "${name}"`;
      throw new FlagError(`${problem}; the commands are ${[...Object.keys(COMMANDS), TOKEN_COMMAND].join(', ')}`);
    }
    if (values.top === 0) throw new FlagError('flag -top requires at least 1');
    const address = withPort(values.address, ['DEBUG_PORT', environment['DEBUG_PORT']], 6070);
    const target: ApiTarget = {
      ...{ address, token: tokenFrom(values.token_file, environment), timeoutMs: TIMEOUT_MS, caFile: values.ca_file },
      ownCertificate: (values.address === OWN_ADDRESS && environment['DEBUG_TLS_CERT']?.trim()) || undefined,
    };
    const call: Call = (request) => callApi(target, request);
    if (values.fleet) return ofFleet(name, values, call);
    const first = await call(command.request(values));
    const answers = [first];
    for (const further of command.further?.(first as never, values) ?? []) {
      answers.push(await call(command.request(further)));
    }
    const exitCode = command.hasFailed?.(first as never) ? Exit.FAILED : Exit.DONE;
    async function text(): Promise<string> {
      const texts: string[] = [];
      for (const answer of answers) texts.push(await command!.format(answer as never, call));
      return texts.join('\n');
    }
    return { exitCode, answer: answers.length === 1 ? first : answers, text };
  },
};

/** Bytes of a new token. */
const TOKEN_BYTES = 32;

function newToken({ name, role, token_file: file }: Values) {
  const token = tokenFrom(file, {}) ?? randomBytes(TOKEN_BYTES).toString('base64url');
  const line = `${name} ${role} sha256:${createHash('sha256').update(token).digest('hex')}`;
  if (!('value' in operatorTokens.parse(line))) {
    throw new FlagError(
      'token requires -name with 1 to 64 letters, digits, ., _, @ and -, and -role view, operate or peer',
    );
  }
  const shown = file === '' ? { token, line } : { line };
  const text = Object.entries(shown).map(([what, value]) => `${what}: ${value}`);
  return { exitCode: Exit.DONE, answer: shown, text: async () => text.join('\n') };
}

/** For which answers of all instances are awaited, and between two looks at them. */
const [FLEET_TIMEOUT_MS, FLEET_INTERVAL_MS] = [10_000, 250];

/** What all instances answer, which are asked one after the other. */
async function ofFleet(name: string, values: Values, call: Call) {
  const format = COMMANDS[name]!.formatFleet;
  if (format === undefined) {
    const names = Object.keys(COMMANDS).filter((each) => COMMANDS[each]!.formatFleet !== undefined);
    throw new FlagError(`flag -fleet is for ${names.join(', ')}`);
  }
  const deadline = performance.now() + FLEET_TIMEOUT_MS;
  let fleet = (await call({ path: 'fleet' })) as Fleet;
  while (fleet.pending > 0 && performance.now() < deadline) {
    await wait(FLEET_INTERVAL_MS);
    fleet = (await call({ path: 'fleet' })) as Fleet;
  }
  const isWell = fleet.instances.every(({ health, problem }) => problem === null && health?.healthy === true);
  const exitCode = name !== 'health' || isWell ? Exit.DONE : Exit.FAILED;
  return { exitCode, answer: fleet, text: async () => format(fleet, values) };
}

/** Without any callers, the settings tell whether they are counted at all. */
async function formatTop(answer: { readonly offenders: readonly Offender[] }, call: Call): Promise<string> {
  if (answer.offenders.length > 0) return formatOffenders(answer.offenders);
  const { settings } = (await call({ path: 'settings' })) as { readonly settings: readonly ListedSetting[] };
  const isCounting = settings.every(({ name, value }) => name !== 'OFFENDERS_SIZE' || value !== '0');
  return isCounting ? 'no caller is limited' : 'limited callers are not counted: OFFENDERS_SIZE is 0';
}

/** With a format, so that the end of a domain such as `shop.json` is not read as one. */
function rulesOf(domain: string): string {
  return `rules/${encodeURIComponent(domain)}.json`;
}

function counterOf({ domain, descriptors, window }: Values): Readonly<Record<string, string>> {
  parseRequest(domain, descriptors);
  const [text = '', further] = descriptors;
  if (further !== undefined) throw new FlagError('a counter is that of one descriptor: give -descriptors once');
  return { domain, descriptor: text, ...(window !== '' && { window }) };
}

function changeOf(values: Values): Readonly<Record<string, string>> {
  return { ...counterOf(values), ...(values.reason !== '' && { reason: values.reason }) };
}
