#!/usr/bin/env node
// The program as it is installed, in the place of main.js: the build bundles main.ts and all that it imports into one
// file, which is loaded with the code that V8 compiled for it at the build, if it fits. Loading the modules one by one
// and compiling them takes twice the CPU time (bench/start).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { CACHE_NAME, readCode } from './code-cache';
import type * as Main from './main';

const BUNDLE = join(__dirname, 'main.bundle.js');

type ModuleFunction = (...parameters: [unknown, NodeJS.Require, NodeJS.Module, string, string]) => void;

const bundle = readFileSync(BUNDLE);
let cachedData: Buffer | undefined;
try {
  cachedData = readCode(join(__dirname, CACHE_NAME), bundle);
} catch (error) {
  // There is no log yet: main.ts writes it.
  Object.assign(module, { ignoredCache: `${CACHE_NAME}: ${(error as Error).message}` });
}
const script = new Script(bundle.toString('latin1'), { filename: BUNDLE, ...(cachedData && { cachedData }) });
const load = script.runInThisContext() as ModuleFunction;
// As this module: it is the one that Node was started with, or that another program imports.
load(exports, require, module, __filename, __dirname);
// Written out, so that ES modules can import it by its name: Node looks for names in the text.
export const { run } = module.exports as typeof Main;
