import { execFileSync } from 'node:child_process';
import { completion } from '../../src/cli/completion';
import { FlagError, booleanFlag, flagHelp, listFlag, numberFlag, parseFlags, textFlag } from '../../src/cli/flags';

const SPEC = {
  address: textFlag('host:port', 'address of the server', 'localhost:8081'),
  domain: textFlag('name', 'domain of the request'),
  descriptors: listFlag('a=b,c=d', 'one descriptor'),
  hits: numberFlag(4294967295, 'hits to add'),
  json: booleanFlag('print JSON'),
};

const DEFAULTS = { address: 'localhost:8081', domain: '', descriptors: [], hits: 0, json: false };

describe('parseFlags', () => {
  it('returns the defaults when no flag is given', () => {
    expect(parseFlags([], SPEC)).toEqual({ information: undefined, values: DEFAULTS, rest: [] });
  });

  /** A command line, and the values and the other arguments that differ from the defaults. */
  it.each<[line: string, values: Readonly<Record<string, unknown>>, rest?: string[]]>([
    ['-domain x', { domain: 'x' }],
    ['-domain=x', { domain: 'x' }],
    // The next argument is the value even if it looks like a flag.
    ['-domain -json', { domain: '-json' }],
    ['-address=', { address: '' }],
    ['-descriptors a=b -domain x --descriptors=c=d -domain y', { descriptors: ['a=b', 'c=d'], domain: 'y' }],
    ['-hits 4294967295', { hits: 4294967295 }],
    ['-json', { json: true }],
    ['--json=true', { json: true }],
    ['-json=T', { json: true }],
    ['-json -json=false', { json: false }],
    ['-json -json=F', { json: false }],
    // A boolean has no next argument as its value.
    ['-json false', { json: true }, ['false']],
    ['a -json - -domain x b', { json: true, domain: 'x' }, ['a', '-', 'b']],
    ['a -json -- -domain x --', { json: true }, ['a', '-domain', 'x', '--']],
  ])('reads %s', (line, values, rest = []) => {
    expect(parseFlags(line.split(' '), SPEC)).toEqual({
      information: undefined,
      values: { ...DEFAULTS, ...values },
      rest,
    });
  });

  it.each([
    ['-h', 'help'],
    ['--help', 'help'],
    ['--version', 'version'],
  ])('reads %s as the request for information, ignoring the arguments after it', (flag, information) => {
    expect(parseFlags(['-json', flag, '-unknown'], SPEC).information).toBe(information);
  });

  it('treats -h as an ordinary flag if the program has a flag of that name', () => {
    const spec = { h: textFlag('host', 'host') };
    expect(parseFlags(['-h', 'x'], spec)).toEqual({ information: undefined, values: { h: 'x' }, rest: [] });
  });

  it.each([
    [['-domian', 'x'], 'unknown flag -domian; did you mean -domain?'],
    [['--verison'], 'unknown flag -verison; did you mean -version?'],
    [['--toString'], 'unknown flag -toString'],
    [['-domain'], 'missing value: -domain name'],
    [['---domain', 'x'], 'invalid flag ---domain: expected -name or -name=value'],
    [['--=x'], 'invalid flag --=x: expected -name or -name=value'],
    [['-json=maybe'], 'invalid value "maybe" for flag -json: expected true or false'],
    ...['-1', '1.5', '', '4294967296'].map((hits): [string[], string] => [
      [`-hits=${hits}`],
      `invalid value "${hits}" for flag -hits: expected a whole number from 0 to 4294967295`,
    ]),
  ])('rejects %j', (argv, message) => {
    expect(() => parseFlags(argv, SPEC)).toThrow(new FlagError(message));
  });
});

it('flagHelp aligns the flags and shows defaults and which flags are repeatable', () => {
  expect(flagHelp(SPEC).split('\n')).toEqual([
    '  -address host:port    address of the server (default localhost:8081)',
    '  -domain name          domain of the request',
    '  -descriptors a=b,c=d  one descriptor (repeatable)',
    '  -hits n               hits to add',
    '  -json                 print JSON',
    '  -h, -help             print this help',
    '  -version              print the version',
    '',
  ]);
});

describe('completion', () => {
  const completed = { name: 'weir-x', flags: SPEC, commands: ['counter get', 'counter set'] };

  it.each<[shell: string, script: string]>([
    ['bash', "complete -o default -W 'counter get set -address -domain -descriptors -hits -json' weir-x\n"],
    [
      'zsh',
      `#compdef weir-x
_weir-x() {
  _arguments '-address[address of the server]:host\\:port:' \\
    '-domain[domain of the request]:name:' \\
    '*-descriptors[one descriptor]:a=b,c=d:' \\
    '-hits[hits to add]:n:' \\
    '-json[print JSON]' \\
    '*:command:(counter get set)'
}
compdef _weir-x weir-x
`,
    ],
    [
      'fish',
      `complete -c weir-x -f -a 'counter get set'
complete -c weir-x -o address -x -d 'address of the server'
complete -c weir-x -o domain -x -d 'domain of the request'
complete -c weir-x -o descriptors -x -d 'one descriptor'
complete -c weir-x -o hits -x -d 'hits to add'
complete -c weir-x -o json -d 'print JSON'
`,
    ],
  ])('for %s has the flags and the commands', (shell, script) => {
    expect(completion(shell, completed)).toBe(script);
  });

  it('is executed by bash', () => {
    const help = "what's [this]: $HOME";
    const flags = { odd: booleanFlag(help) };
    const script = `${completion('bash', { name: 'weir-x', flags, commands: [] })}complete -p weir-x`;
    expect(execFileSync('bash', ['-c', script], { encoding: 'utf8' })).toBe("complete -o default -W '-odd' weir-x\n");
    expect(completion('fish', { name: 'weir-x', flags, commands: [] })).toContain(`-d 'what'\\''s [this]: $HOME'`);
    expect(completion('zsh', { name: 'weir-x', flags, commands: [] })).toContain(`what'\\''s \\[this\\]\\: $HOME]'`);
  });

  it('is refused for another shell', () => {
    const message = 'invalid value "csh" for flag -completion: expected bash, zsh, fish';
    expect(() => completion('csh', completed)).toThrow(new FlagError(message));
  });
});
