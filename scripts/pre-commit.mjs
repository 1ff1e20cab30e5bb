#!/usr/bin/env node
// What the hooks of .pre-commit-hooks.yaml run: weir-check of the clone that pre-commit keeps, which is installed and built the first time.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './workspace.mjs';

function play(file, args, stdio) {
  const { status } = spawnSync(process.execPath, [join(ROOT, file), ...args], { stdio });
  if (status !== 0) process.exit(status ?? 1);
}

// What it prints is no result of the check.
play('scripts/prepare.mjs', [], ['ignore', process.stderr, process.stderr]);
play('dist/cli/weir-check.js', process.argv.slice(2), 'inherit');
