#!/usr/bin/env node
// What the hooks of .pre-commit-hooks.yaml run: weir-check of the clone that pre-commit keeps, which is installed and
// built the first time.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT, run } from './workspace.mjs';

run(process.execPath, ['scripts/prepare.mjs']);
const args = [join(ROOT, 'dist/cli/weir-check.js'), ...process.argv.slice(2)];
process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
