// What the reader of plain YAML saves: npm run bench:reading-rules. Reads a file of 1,000, 20,000 and 100,000 rules with it and with the
// YAML library, each in its own process, and prints the CPU time and the largest resident memory of the process. Needs a build.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const COUNTS = [1_000, 20_000, 100_000];
/** Runs of each case; the one with the least CPU time counts. */
const RUNS = 3;

const require = createRequire(import.meta.url);

function load(path) {
  return require(`../../dist/rules/files/${path}.js`);
}

const readers = {
  plain: ({ text }) => load('yaml/plain-yaml').parsePlainYaml(text),
  library: (source, report) => load('yaml/parse-yaml').parseYaml(source, report),
};

function rules(count) {
  const each = Array.from(
    { length: count },
    (_, user) =>
      `  - key: user\n    value: u${user}\n    rate_limit:\n      unit: minute\n      requests_per_unit: 10\n`,
  );
  return Buffer.from(`domain: all\ndescriptors:\n${each.join('')}`);
}

/** What one process uses to read the file once. */
function measure(reader, count) {
  const report = new (load('problems/problem-report').ProblemReport)();
  const source = load('yaml/decode-text').decodeText('all.yaml', rules(count), report);
  const before = process.cpuUsage();
  if (!readers[reader](source, report)) throw new Error('the rules should be good');
  const { user, system } = process.cpuUsage(before);
  return { milliseconds: (user + system) / 1e3, mebibytes: process.resourceUsage().maxRSS / 1024 };
}

function measureInProcess(reader, count) {
  const self = fileURLToPath(import.meta.url);
  return JSON.parse(execFileSync(process.execPath, ['--max-old-space-size=4096', self, reader, String(count)]));
}

const [, , reader, count] = process.argv;
if (reader === undefined) {
  for (const rulesInFile of COUNTS) {
    const results = Object.keys(readers).map((each) => {
      const runs = Array.from({ length: RUNS }, () => measureInProcess(each, rulesInFile));
      return { reader: each, ...runs.sort((one, other) => one.milliseconds - other.milliseconds)[0] };
    });
    process.stdout.write(`${rulesInFile} rules\n`);
    for (const { reader: name, milliseconds, mebibytes } of results) {
      const ratio = (milliseconds / results[0].milliseconds).toFixed(1);
      process.stdout.write(
        `  ${name.padEnd(8)}${milliseconds.toFixed(0).padStart(6)} ms (ratio ${ratio}), ${mebibytes.toFixed(0).padStart(5)} MiB\n`,
      );
    }
  }
} else {
  process.stdout.write(JSON.stringify(measure(reader, Number(count))));
}
