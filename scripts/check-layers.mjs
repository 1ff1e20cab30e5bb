// Checks the imports of src/ and packages/ against .dependency-cruiser.cjs and prints why each forbidden import is
// forbidden.
import { createRequire } from 'node:module';
import { cruise } from 'dependency-cruiser';
import { ROOT, printStatus } from './workspace.mjs';

const { forbidden, options } = createRequire(import.meta.url)('../.dependency-cruiser.cjs');
process.chdir(ROOT);
const { output } = await cruise(['src', 'packages/versioning/src'], {
  ...options,
  validate: true,
  ruleSet: { forbidden },
});

// Without TypeScript support dependency-cruiser finds no modules and reports no violations.
if (output.summary.totalCruised < 10 || output.summary.totalDependenciesCruised < 10) {
  printStatus(`the layer check found only ${output.summary.totalCruised} modules, so it did not read src/`);
  process.exit(1);
}
for (const { from, to, rule } of output.summary.violations) {
  const { comment } = forbidden.find(({ name }) => name === rule.name);
  process.stderr.write(`${from} imports ${to}\n  ${comment}\n`);
}
printStatus(`layers: ${output.summary.totalCruised} modules, ${output.summary.violations.length} violations`);
process.exit(output.summary.violations.length === 0 ? 0 : 1);
