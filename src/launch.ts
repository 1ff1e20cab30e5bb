#!/usr/bin/env node
// The program as it is installed, in the place of main.js: the build bundles main.ts and all that it imports into one
// file, which is loaded with the code that V8 compiled for it at the build, if Node has the same version and flags of
// V8. Loading the modules one by one and compiling them takes twice the CPU time (bench/start).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import type * as Main from './main';

const BUNDLE = join(__dirname, 'main.bundle.js');

type ModuleFunction = (...parameters: [unknown, NodeJS.Require, NodeJS.Module, string, string]) => void;

function readCodeCache(): Buffer | undefined {
  try {
    return readFileSync(join(__dirname, `main.bundle.${process.version}-${process.arch}.cache`));
  } catch {
    return undefined;
  }
}

const cachedData = readCodeCache();
const options = { filename: BUNDLE, ...(cachedData && { cachedData }) };
const script = new Script(readFileSync(BUNDLE, 'latin1'), options);
const load = script.runInThisContext() as ModuleFunction;
// As this module: it is the one that Node was started with, or that another program imports.
load(exports, require, module, __filename, __dirname);
// Written out, so that ES modules can import it by its name: Node looks for names in the text.
export const { run } = module.exports as typeof Main;
